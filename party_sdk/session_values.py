"""How the texts are read by which people ask for a session: at a terminal, or in a form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from clustering_protocols.errors import InvalidParameters

if TYPE_CHECKING:
    from pydantic import BaseModel

    from clustering_protocols.recipe import Preparation
    from clustering_protocols.release import Release
    from clustering_protocols.schema import Schema
    from clustering_protocols.terms import About, Deadlines, Layout
    from party_sdk.identities import Acquaintances

Readers = Literal["members", "everybody"]
_M = TypeVar("_M", bound="BaseModel")
_PLACE = re.compile(r"([^=]+)=([0-9]+),([0-9]+)(?:,(.+))?")


def read_layout(slots: tuple[str, ...]) -> Layout:
    """Return the layout of NAME=ROW,COLUMN,TITLE texts."""
    places = [_PLACE.fullmatch(text) for text in slots]
    if not all(places):
        raise InvalidParameters("A slot has the form NAME=ROW,COLUMN, e.g. north=1,2.")
    if low := next((p[0] for p in places if p and "0" in (p[2], p[3])), None):
        raise InvalidParameters(
            f"Rows and columns of slots count from 1: {low!r} says 0."
        )
    named = [
        {
            "name": place[1],
            "row": int(place[2]) - 1,
            "column": int(place[3]) - 1,
            "title": place[4] or "",
        }
        for place in places
        if place
    ]
    return layout_of(named)


def layout_of(named: Iterable[Mapping[str, Any]]) -> Layout:
    """Return the layout of slots in any order, each as name, title, row and column."""
    from clustering_protocols.terms import Layout

    slots = sorted(named, key=lambda slot: (slot["row"], slot["column"]))
    return _checked(Layout, {"slots": slots})


def read_deadlines(join_within: int | None, answer_within: int | None) -> Deadlines:
    """Return how long parties have, in seconds; the usual where nothing is said."""
    from clustering_protocols.terms import Deadlines

    waits = {"recruiting": join_within, "round": answer_within}
    given = {name: s for name, s in waits.items() if s is not None}
    return _checked(Deadlines, given)


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
    from party_sdk.trials.gaps import by_rule

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

    from clustering_protocols.explaining import explain
    from clustering_protocols.recipe import Preparation

    try:
        return Preparation.model_validate_json(path.read_bytes())
    except OSError:
        raise InvalidParameters(f"There is no preparation {path.name!r}.") from None
    except ValidationError as error:
        said = explain(error)
        raise InvalidParameters(f"{path.name!r} is no preparation: {said}") from None


def read_release(profiles: Readers | None, rows: int | None) -> Release | None:
    """Return what the terms release; None for labels alone.

    Raises
    ------
    InvalidParameters
        If rows are given for profiles that nobody reads.
    """
    if profiles is None:
        if rows is not None:
            from clustering_protocols.errors import InvalidParameters

            raise InvalidParameters("profile_rows: say who reads them, --profiles.")
        return None
    from clustering_protocols.release import Release

    more = {} if rows is None else {"min_cluster_rows": rows}
    return _checked(Release, {"profiles": profiles, **more})


def read_about(words: Mapping[str, str]) -> About:
    """Return title, purpose, legal basis and contact."""
    from clustering_protocols.terms import About

    return _checked(About, words)


def _checked(model: type[_M], values: Mapping[str, Any]) -> _M:
    """Return a model of values; :class:`InvalidParameters` names what does not fit."""
    from pydantic import ValidationError

    from clustering_protocols.explaining import explain

    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidParameters(explain(error)) from None


def with_id_patterns(
    values: Mapping[str, Any], patterns: Sequence[str]
) -> dict[str, Any]:
    """Return parameters with what ids look like, where it is said."""
    if not patterns:
        return dict(values)
    alignment = {**values.get("alignment", {}), "id_patterns": list(patterns)}
    return {**values, "alignment": alignment}


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
