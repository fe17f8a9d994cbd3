"""Read ``policy.toml``, the file with the policy in a party's home.

The keys of the file are the fields of :class:`~party_sdk.home.policy.Policy` and
``protocol_packages``.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from clustering_protocols.common.errors import InvalidParameters
from party_sdk.home.addresses import address_advice
from party_sdk.home.policy import Policy

_PACKAGES: Final = "protocol_packages"


class _Form(NamedTuple):
    """The values allowed for a key: in words, as a test, and as a conversion."""

    words: str
    fits: Callable[[Any], bool]
    read: Callable[[Any], Any] = lambda value: value


def _is_nonnegative_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


_TEXTS: Final = _Form('a list of texts, ["…", "…"]', _are_texts, frozenset)
_ADDRESSES: Final = _Form(
    'a list of addresses, ["https://…"]',
    lambda value: _are_texts(value) and not any(map(address_advice, value)),
    frozenset,
)
_COUNT: Final = _Form(
    "a whole number, 0 or more",
    lambda value: _is_nonnegative_number(value) and isinstance(value, int),
)
_NUMBER: Final = _Form("a number, 0 or more", _is_nonnegative_number, float)

_FORMS: Final = {
    "accepted_risks": _TEXTS,
    "protocols": _TEXTS,
    _PACKAGES: _TEXTS,
    "coordinators": _TEXTS,
    "analysts": _ADDRESSES,
    "minimum_rows": _COUNT,
    "least_known": _COUNT,
    "ids_per_row": _NUMBER,
    "intersections_limit": _COUNT,
    "epsilon_limit": _NUMBER,
    "epsilon_total": _NUMBER,
    "largest_weight": _NUMBER,
    "sums_limit": _Form(
        "a proportion, from 0 to 1",
        lambda value: _is_nonnegative_number(value) and value <= 1,
        float,
    ),
}


def policy_file(home: Path) -> Path:
    """Return the path of the policy file in a home."""
    return home / "policy.toml"


def read_policy(home: Path) -> Policy:
    """Return the policy of a home; keys that the file does not set have their defaults.

    Raises InvalidParameters, naming the line or key, if the file is invalid.
    """
    path = policy_file(home)
    return _parse_policy(path.read_bytes(), path) if path.exists() else Policy()


def read_protocol_packages(home: Path) -> tuple[str, ...]:
    """Return the distributions from which this home loads protocols; by default none.

    Raises InvalidParameters if the policy file is invalid.
    """
    path = policy_file(home)
    if not path.exists():
        return ()
    return tuple(sorted(_parse_values(path.read_bytes(), path).get(_PACKAGES, ())))


def parse_guards(values: Mapping[str, Any]) -> dict[str, Any]:
    """Validate policy values. Raises InvalidParameters if a key or value is invalid."""
    if _PACKAGES in values:
        raise InvalidParameters(
            f"--guard: {_PACKAGES!r} concerns the whole process; set it in policy.toml."
        )
    return {key: _check_value(key, value, "--guard") for key, value in values.items()}


def _parse_policy(content: bytes, path: Path) -> Policy:
    values = _parse_values(content, path)
    values.pop(_PACKAGES, None)  # concerns the whole process, not a session
    return Policy(**values)


def _parse_values(content: bytes, path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InvalidParameters(f"{path.name}: it is not text in UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidParameters(f"{path.name}: {error}.") from None
    return {key: _check_value(key, value, path.name) for key, value in document.items()}


def _check_value(key: str, value: Any, source: str) -> Any:
    form = _FORMS.get(key)
    if form is None:
        near = difflib.get_close_matches(key, _FORMS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_FORMS)}."
        raise InvalidParameters(f"{source}: {key!r} is not a policy key; {hint}")
    if not form.fits(value):
        raise InvalidParameters(f"{source}: {key!r} must be {form.words}.")
    return form.read(value)
