"""How the texts that `coterie session …` is given are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from clustering_protocols.errors import InvalidParameters

if TYPE_CHECKING:
    from pydantic import BaseModel

    from clustering_protocols.recipe import Preparation
    from clustering_protocols.schema import Schema
    from clustering_protocols.terms import About, Deadlines, Layout
    from party_sdk.identities import Acquaintances

_M = TypeVar("_M", bound="BaseModel")
_PLACE = re.compile(r"([^=]+)=([0-9]+),([0-9]+)(?:,(.+))?")


def read_layout(slots: tuple[str, ...]) -> Layout:
    """Return the layout of NAME=ROW,COLUMN,TITLE texts."""
    from clustering_protocols.terms import Layout

    places = [_PLACE.fullmatch(text) for text in slots]
    if not all(places):
        raise InvalidParameters("A slot has the form NAME=ROW,COLUMN, e.g. north=1,2.")
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
    named.sort(key=lambda slot: (slot["row"], slot["column"]))
    return _checked(Layout, {"slots": named})


def read_deadlines(join_within: int | None, answer_within: int | None) -> Deadlines:
    """Return how long parties have, in seconds; the usual where nothing is said."""
    from clustering_protocols.terms import Deadlines

    waits = {"recruiting": join_within, "round": answer_within}
    return Deadlines(**{name: s for name, s in waits.items() if s is not None})


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

    from clustering_protocols.errors import explain
    from clustering_protocols.recipe import Preparation

    try:
        return Preparation.model_validate_json(path.read_bytes())
    except OSError:
        raise InvalidParameters(f"There is no preparation {path.name!r}.") from None
    except ValidationError as error:
        said = explain(error)
        raise InvalidParameters(f"{path.name!r} is no preparation: {said}") from None


def read_about(words: Mapping[str, str]) -> About:
    """Return title, purpose, legal basis and contact."""
    from clustering_protocols.terms import About

    return _checked(About, words)


def _checked(model: type[_M], values: Mapping[str, Any]) -> _M:
    """Return a model of values; :class:`InvalidParameters` names what does not fit."""
    from pydantic import ValidationError

    from clustering_protocols.errors import explain

    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidParameters(explain(error)) from None
