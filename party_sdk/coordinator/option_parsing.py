"""Parse the texts of options or form fields that describe a session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from clustering_protocols.common.errors import InvalidParameters

if TYPE_CHECKING:
    from clustering_protocols.terms.preparation import Preparation
    from clustering_protocols.terms.schema import Schema
    from clustering_protocols.terms.sections import Evaluation
    from clustering_protocols.terms.terms import Layout, Terms
    from party_sdk.home.identities import TrustedInstitutions

Rule: TypeAlias = Literal["refuse", "drop", "mean", "median"]
T = TypeVar("T", "Preparation", "Schema")
_POSITION: Final = re.compile(r"([^=]+)=([0-9]+),([0-9]+)(?:,(.+))?")
_RANGE: Final = re.compile(r"\s*(\d{1,5})\s*(?:\.\.|-|to)\s*(\d{1,5})\s*")
_LIST: Final = re.compile(r"\s*\d{1,5}\s*(?:,\s*\d{1,5}\s*)+")
_OWN_OPTIONS: Final = frozenset({"layout", "identities", "evaluation"})
_MAX_NUMBERS: Final = 1000  # in a range; far more than a session may have


def parse_layout(parties: tuple[str, ...], *, same_people: bool = False) -> Layout:
    """Parse the parties of a session: names only, or NAME=ROW,COLUMN,TITLE texts.

    same_people: whether parties without a position hold different variables of the same
        people; by default they hold different people.
    """
    from clustering_protocols.terms.terms import Layout

    if not parties:
        return Layout.lattice(1, 1)
    if not any("=" in text for text in parties):
        parties = tuple(
            f"{name}=1,{number}" if same_people else f"{name}={number},1"
            for number, name in enumerate(parties, start=1)
        )
    elif same_people:
        raise InvalidParameters("--party has positions: omit --same-people.")
    positions = [_POSITION.fullmatch(text) for text in parties]
    if not all(positions):
        raise InvalidParameters(
            "Give a position to every party (north=1,2) or to none (north)."
        )
    if low := next((p[0] for p in positions if p and "0" in (p[2], p[3])), None):
        raise InvalidParameters(
            f"Rows and columns of parties are counted from 1, but {low!r} has 0."
        )
    return layout_of_slots(
        {
            "name": position[1],
            "row": int(position[2]) - 1,
            "column": int(position[3]) - 1,
            "title": position[4] or "",
        }
        for position in positions
        if position
    )


def layout_of_slots(slots: Iterable[Mapping[str, Any]]) -> Layout:
    """Return the layout of slots that have a name, title, row and column, in any order."""
    from clustering_protocols.common.values import validate_values
    from clustering_protocols.terms.terms import Layout

    in_order = sorted(slots, key=lambda slot: (slot["row"], slot["column"]))
    return validate_values(Layout, {"slots": in_order})


def read_expected_keys(
    texts: tuple[str, ...], trusted: TrustedInstitutions
) -> dict[str, str]:
    """Return the key for each slot of SLOT=CARD texts; CARD is a trusted name or a file."""
    from clustering_protocols.secrecy.identities import Card

    keys = {}
    for text in texts:
        slot, separator, card_name = text.partition("=")
        if not separator:
            raise InvalidParameters(f"{text!r} is not SLOT=CARD.")
        key = trusted.keys_by_name().get(card_name)
        if key is None:
            if not Path(card_name).is_file():
                raise InvalidParameters(
                    f"{card_name!r} is neither a card file nor the name of a card that you trust."
                )
            card = Card.read(Path(card_name).read_bytes())
            trusted.check_key(card.name, card.key)
            key = card.key
        keys[slot] = key
    return keys


def read_dictionary(paths: tuple[Path, ...]) -> list[Schema] | None:
    """Read the dictionary of each column group from a file; None without files."""
    if not paths:
        return None
    from party_sdk.tables.variables import read_schema

    return [read_schema(path) for path in paths]


def read_preparation(
    paths: tuple[Path, ...],
    missing: Rule | None,
    dictionary: Sequence[Schema] | None,
    earlier: Terms | None = None,
    covariates: str | None = None,
) -> Sequence[Preparation] | None:
    """Return the preparation of each column group, from files or by a single rule.

    earlier: terms whose preparation is the default for the same variables.
    covariates: the variables, separated by commas, whose effects are preserved when
        site effects are removed, or 'none'; if empty, site effects are not removed. By
        default as in the earlier terms.
    """
    if paths and (missing or covariates):
        raise InvalidParameters(
            "Give --preparation, or --missing and --harmonise, not both."
        )
    if dictionary is None:
        if paths or missing or covariates:
            raise InvalidParameters(
                "A preparation needs a dictionary of the fields: --schema."
            )
        return None
    if paths:
        return [_read_preparation(path) for path in paths]
    from clustering_protocols.terms.preparation import Preparation

    plans = None if earlier is None else earlier.preparation
    if plans and plans[0].missing == "leave":
        plans = None  # the earlier session described variables, and clustered nothing
    prepared: Sequence[Preparation] | None
    if missing or plans is None or len(plans) != len(dictionary):
        prepared = preparations_by_rule(missing, dictionary)
    else:
        clustered = [set(schema.clustered_part.names) for schema in dictionary]
        prepared = [
            Preparation(
                **dict(plan)
                | {"fields": tuple(f for f in plan.fields if f.name in names)}
            )
            for plan, names in zip(plans, clustered, strict=True)
        ]
    if covariates is None:
        covariates = covariates_of(plans or ()) if missing else None
        if covariates is None:
            return prepared
    if not covariates:
        sites_stay = {"harmonise": None, "covariates": ()}
        return prepared and [plan.model_copy(update=sites_stay) for plan in prepared]
    names = [name.strip() for name in covariates.split(",")] * (covariates != "none")
    if unknown := set(names) - {name for s in dictionary for name in s.names}:
        raise InvalidParameters(
            f"no dictionary has a variable {min(unknown)!r}.", field="covariates"
        )
    return [
        plan.model_copy(
            update={
                "harmonise": "combat",
                "covariates": tuple(name for name in names if name in schema.names),
            }
        )
        for plan, schema in zip(
            prepared or [Preparation() for _ in dictionary], dictionary, strict=True
        )
    ]


def covariates_of(plans: Sequence[Preparation]) -> str | None:
    """Return the covariates of all column groups, as :func:`read_preparation` takes them.

    Returns None if no plan removes site effects.
    """
    if not any(plan.harmonise for plan in plans):
        return None
    return ", ".join(name for plan in plans for name in plan.covariates) or "none"


def _read_preparation(path: Path) -> Preparation:
    from pydantic import ValidationError

    from clustering_protocols.common.values import explain_validation_error
    from clustering_protocols.terms.preparation import Preparation

    try:
        return Preparation.model_validate_json(path.read_bytes())
    except OSError:
        raise InvalidParameters(f"There is no preparation {path.name!r}.") from None
    except ValidationError as error:
        reason = explain_validation_error(error)
        raise InvalidParameters(f"{path.name!r} is invalid: {reason}") from None


def add_id_patterns(
    values: Mapping[str, Any], patterns: Sequence[str]
) -> dict[str, Any]:
    """Return the parameters with these id patterns added, if there are any."""
    if not patterns:
        return dict(values)
    alignment = {**values.get("alignment", {}), "id_patterns": list(patterns)}
    return {**values, "alignment": alignment}


def add_match_keys(
    values: Mapping[str, Any], match_keys: Sequence[str]
) -> dict[str, Any]:
    """Return the parameters with match keys added; @FILE reads keys from a file."""
    if not match_keys:
        return dict(values)
    keys: list[str] = []
    for text in match_keys:
        if not text.startswith("@"):
            keys.append(text)
            continue
        try:
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise InvalidParameters(f"There is no file of keys {text[1:]!r}.") from None
        keys += filter(None, map(str.strip, lines))
    alignment = {"method": "ecdh", **values.get("alignment", {})}
    return {**values, "alignment": {**alignment, "match_keys": keys}}


def parse_values(texts: tuple[str, ...]) -> dict[str, Any]:
    """Parse NAME=VALUE texts; dots in a name separate the levels of nested values.

    A value is parsed as JSON if possible, and is a string otherwise.
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise InvalidParameters(f"{text!r} is not NAME=VALUE.")
        *path, last = name.strip().split(".")
        branch = values
        for part in path:
            branch = branch.setdefault(part, {})
            if not isinstance(branch, dict):
                raise InvalidParameters(f"{text!r}: {part!r} already has a value.")
        if last in branch:
            raise InvalidParameters(f"{name.strip()!r} is given twice.")
        branch[last] = value
        with suppress(ValueError):
            branch[last] = json.loads(value)
    return values


def preparations_by_rule(
    rule: Rule | None, dictionary: Sequence[Schema]
) -> list[Preparation] | None:
    """Return the preparation of each column group, given one rule for missing values.

    Clustered categories are turned into indicators under any rule.

    rule: {'refuse', 'drop', 'mean', 'median'} or None. drop: rows with missing values do
        not take part. mean, median: the value that replaces missing numbers; missing
        categories become the most frequent level. refuse, None: tables with missing
        values are refused.

    Raises InvalidParameters if the rule is unknown.
    """
    from clustering_protocols.terms.preparation import Preparation, build_imputation

    if rule is None or rule == "refuse":
        clustered = [field for s in dictionary for field in s.clustered_part.fields]
        categories = any(field.is_category for field in clustered)
        return [Preparation() for _ in dictionary] if categories else None
    if rule not in {"drop", "mean", "median"}:
        raise InvalidParameters(
            "a rule for all missing values is one of refuse, drop, mean, median.",
            field="preparation",
        )
    if rule == "drop":
        return [Preparation(missing="drop") for _ in dictionary]
    return [build_imputation(schema, rule) for schema in dictionary]


def expand_preparation(
    preparation: Rule | Preparation | Sequence[Preparation] | None,
    dictionary: Sequence[Schema] | None,
) -> Sequence[Preparation] | None:
    """Return the preparation of each column group; a rule or None is expanded.

    Raises InvalidParameters if there are no dictionaries.
    """
    if dictionary is None:
        if preparation is not None:
            raise InvalidParameters("A preparation needs a dictionary of the fields.")
        return None
    if preparation is None or isinstance(preparation, str):
        return preparations_by_rule(preparation, dictionary)
    return as_sequence(preparation)


def as_sequence(value: T | Sequence[T] | None) -> Sequence[T] | None:
    """Return a single value as a list; return a list, a tuple or None unchanged."""
    if value is None or isinstance(value, list | tuple):
        return value
    return [value]  # type: ignore[list-item]  # T is not a list or tuple


def parse_runs(
    params: Mapping[str, Any],
    choose: str | None = None,
    within: int | None = None,
) -> tuple[dict[str, Any], Evaluation | None]:
    """Return parameters with one ``n_clusters``, and the runs if there are several.

    Several numbers of clusters are given as a list, a range, or a text such as ``2..8``
    or ``2, 3, 5``.

    Raises InvalidParameters if the numbers are invalid, or if ``choose`` or ``within``
    is used with only one number.
    """
    from clustering_protocols.common.values import validate_values
    from clustering_protocols.terms.sections import Evaluation

    numbers = _parse_cluster_numbers(params.get("n_clusters"))
    if numbers == []:
        raise InvalidParameters(
            "that range or list is empty; write e.g. 2..8.", field="n_clusters"
        )
    if numbers is None or len(numbers) == 1:
        if choose is not None or within is not None:
            raise InvalidParameters(
                "give several n_clusters, e.g. n_clusters=2..8.", field="choose"
            )
        return {**params, **({"n_clusters": numbers[0]} if numbers else {})}, None
    rules = {"choose": choose, "within": within}
    chosen_rules = {name: value for name, value in rules.items() if value is not None}
    runs = validate_values(Evaluation, {"n_clusters": numbers, **chosen_rules})
    return {**params, "n_clusters": runs.n_clusters[-1]}, runs


def _parse_cluster_numbers(value: Any) -> list[Any] | None:
    """Return the numbers of a list or range, or None if the value is neither."""
    if isinstance(value, str) and _LIST.fullmatch(value):
        value = [int(number) for number in value.split(",")]
    if isinstance(value, range):
        return sorted(value[:_MAX_NUMBERS])
    if isinstance(value, list):
        return sorted(set(value)) if all(type(k) is int for k in value) else value
    match = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    first, last = map(int, match.groups())
    return list(range(first, min(last, first + _MAX_NUMBERS) + 1))


def earlier_params(terms: Terms, protocol: str) -> dict[str, Any]:
    """Return the parameters of an earlier session, with all its numbers of clusters.

    protocol: the protocol of the new session; parameters it does not have are dropped.
    """
    from clustering_protocols import catalogue, session_terms
    from clustering_protocols.contract.parameters import required_choices

    params = session_terms.check_terms(terms)
    values = params.model_dump(mode="json", exclude_unset=True)
    values = (
        params.model_dump(mode="json", include={*required_choices(type(params))})
        | values
    )
    if terms.evaluation is not None:
        values["n_clusters"] = list(terms.evaluation.n_clusters)
    fields = catalogue.protocol(protocol).params.model_fields
    return {name: value for name, value in values.items() if name in fields}


def earlier_run_choice(
    terms: Terms, protocol: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how an earlier session chose among its runs; empty without several runs.

    values: the parameters of the new session.
    """
    numbers = _parse_cluster_numbers(values.get("n_clusters"))
    if terms.evaluation is None or numbers is None or len(numbers) < 2:
        return {}
    choice: dict[str, Any] = {"within": terms.evaluation.within}
    if protocol == terms.protocol.name:
        choice["choose"] = terms.evaluation.choose
    return choice


def merge_values(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base parameters with the changes applied, also within nested ones."""
    return {
        **base,
        **{
            name: {**base[name], **value}
            if isinstance(value, dict) and isinstance(base.get(name), dict)
            else value
            for name, value in changes.items()
        },
    }


def earlier_sections(
    terms: Terms | None, changes: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return an earlier session's sections with changes applied, for a new request.

    changes: the changed fields of each section.
    """
    from pydantic import BaseModel

    from clustering_protocols.terms.request_fields import build_section

    base = {
        name: section.model_dump(exclude_none=True)
        for name, section in ({} if terms is None else terms.sections).items()
        if isinstance(section, BaseModel) and name not in _OWN_OPTIONS
    }
    return {
        name: build_section(name, {**base.get(name, {}), **changes.get(name, {})})
        for name in base.keys() | changes.keys()
    }
