"""How the texts are read by which people ask for a session: at a terminal, or in a form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clustering_protocols.common.errors import InvalidParameters

if TYPE_CHECKING:
    from clustering_protocols.terms.preparation import Preparation
    from clustering_protocols.terms.schema import Schema
    from clustering_protocols.terms.terms import Layout, Slot
    from party_sdk.home.identities import Acquaintances

_PLACE = re.compile(r"([^=]+)=([0-9]+),([0-9]+)(?:,(.+))?")


def read_layout(slots: tuple[str, ...]) -> Layout:
    """Return the layout of NAME=ROW,COLUMN,TITLE texts."""
    return layout_of(_read_places(slots))


def read_slots(slots: tuple[str, ...]) -> list[Slot]:
    """Return the same as single slots, to be added to others."""
    from clustering_protocols.common.values import validate_values
    from clustering_protocols.terms.terms import Slot

    return [validate_values(Slot, each) for each in _read_places(slots)]


def _read_places(slots: tuple[str, ...]) -> list[dict[str, Any]]:
    places = [_PLACE.fullmatch(text) for text in slots]
    if not all(places):
        raise InvalidParameters("A slot has the form NAME=ROW,COLUMN, e.g. north=1,2.")
    if low := next((p[0] for p in places if p and "0" in (p[2], p[3])), None):
        raise InvalidParameters(
            f"Rows and columns of slots count from 1: {low!r} says 0."
        )
    return [
        {
            "name": place[1],
            "row": int(place[2]) - 1,
            "column": int(place[3]) - 1,
            "title": place[4] or "",
        }
        for place in places
        if place
    ]


def layout_of(named: Iterable[Mapping[str, Any]]) -> Layout:
    """Return the layout of slots in any order, each as name, title, row and column."""
    from clustering_protocols.common.values import validate_values
    from clustering_protocols.terms.terms import Layout

    slots = sorted(named, key=lambda slot: (slot["row"], slot["column"]))
    return validate_values(Layout, {"slots": slots})


def read_expected(texts: tuple[str, ...], known: Acquaintances) -> dict[str, str]:
    """Return keys by slot of SLOT=CARD texts."""
    from clustering_protocols.secrecy.identities import Card

    keys = {}
    for text in texts:
        slot, found, named = text.partition("=")
        if not found:
            raise InvalidParameters(f"{text!r} is not SLOT=CARD.")
        key = known.read().get(named)
        if key is None:
            if not Path(named).is_file():
                raise InvalidParameters(
                    f"{named!r} is neither the file of a card nor somebody you know."
                )
            card = Card.read(Path(named).read_bytes())
            known.check(card.name, card.key)
            key = card.key
        keys[slot] = key
    return keys


def read_dictionary(paths: tuple[Path, ...]) -> list[Schema] | None:
    """Return the dictionaries of column groups in files; None of no file."""
    if not paths:
        return None  # and no library of tables is imported
    from party_sdk.tables.dictionaries import read_schema

    return [read_schema(path) for path in paths]


def read_preparation(
    paths: tuple[Path, ...],
    missing: Literal["drop", "mean", "median"] | None,
    dictionary: Sequence[Schema] | None,
) -> list[Preparation] | None:
    """Return the preparations of column groups: in files, or by one rule for all gaps."""
    from party_sdk.coordinator.missing_values import by_rule

    if paths and missing:
        raise InvalidParameters("Give --preparation or --missing, not both.")
    if dictionary is None:
        if paths or missing:
            raise InvalidParameters(
                "A preparation needs a dictionary of the fields: --schema."
            )
        return None
    if paths:
        return [_read_preparation(path) for path in paths]
    return by_rule(missing, dictionary)


def _read_preparation(path: Path) -> Preparation:
    from pydantic import ValidationError

    from clustering_protocols.common.validation_messages import explain
    from clustering_protocols.terms.preparation import Preparation

    try:
        return Preparation.model_validate_json(path.read_bytes())
    except OSError:
        raise InvalidParameters(f"There is no preparation {path.name!r}.") from None
    except ValidationError as error:
        said = explain(error)
        raise InvalidParameters(f"{path.name!r} is no preparation: {said}") from None


def with_id_patterns(
    values: Mapping[str, Any], patterns: Sequence[str]
) -> dict[str, Any]:
    """Return parameters with what ids look like, where it is said."""
    if not patterns:
        return dict(values)
    alignment = {**values.get("alignment", {}), "id_patterns": list(patterns)}
    return {**values, "alignment": alignment}


def with_match_keys(
    values: Mapping[str, Any], match_keys: Sequence[str]
) -> dict[str, Any]:
    """Return parameters with the match keys by which rows are linked, if there are any."""
    if not match_keys:
        return dict(values)
    said = {"method": "ecdh", **values.get("alignment", {})}
    keys = [key for text in match_keys for key in _keys_of(text)]
    return {**values, "alignment": {**said, "match_keys": keys}}


def _keys_of(text: str) -> list[str]:
    """Return one match key, or those of the lines of a file."""
    if not text.startswith("@"):
        return [text]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InvalidParameters(f"There is no file of keys {text[1:]!r}.") from None
    return [line.strip() for line in lines if line.strip()]


def read_values(given: tuple[str, ...]) -> dict[str, Any]:
    """Return values from NAME=VALUE texts; a dot reaches into a part.

    Values are JSON where they parse as JSON, texts otherwise.
    """
    values: dict[str, Any] = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found:
            raise InvalidParameters(f"{text!r} is not NAME=VALUE.")
        *path, last = name.strip().split(".")
        place = values
        for part in path:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise InvalidParameters(f"{text!r}: {part!r} has a value of its own.")
        if last in place:
            raise InvalidParameters(f"{name.strip()!r} is given twice.")
        place[last] = _value(value)
    return values


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
