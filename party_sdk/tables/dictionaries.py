"""Data dictionaries as files: read, and drafted from a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from clustering_protocols.errors import InvalidData
from clustering_protocols.explaining import explain
from clustering_protocols.schema import Field, Level, Schema, normal
from party_sdk.tables.columns import texts
from party_sdk.tables.decoding import kind_of
from party_sdk.tables.opening import How, examine, opened, read_again
from party_sdk.tables.study_files import STUDIES, Codebook, codebook

MOST_LEVELS: Final = 50
"""A column of words with more of them is hardly a category."""

Confirm = Callable[[str, Sequence[str]], bool]


def read_schema(path: Path) -> Schema:
    """Return the dictionary in a file.

    Raises
    ------
    InvalidData
        If there is none, or it contradicts itself.
    """
    try:
        return Schema.model_validate_json(path.read_bytes())
    except OSError:
        raise InvalidData(f"There is no dictionary {path.name!r}.") from None
    except ValidationError as error:
        raise InvalidData(f"{path.name!r} is no dictionary: {explain(error)}") from None


def infer(table: Any, how: How, confirm: Confirm) -> tuple[Schema, list[str]]:
    """Return the draft of a dictionary, and the columns that it leaves out.

    Names and types alone: bounds would tell of the rows. Files of studies know more:
    titles, and labels of values; integers that all have labels are a category.

    Parameters
    ----------
    confirm : callable
        Called with a column of few words and these words; whether they are its levels.

    Raises
    ------
    InvalidData
        If the table cannot be read, or no column can be described.
    """
    report, _ = examine(table, how)
    report.require_none()
    about = _codebook(table)
    asked = [
        column.name
        for column in report.columns
        if column.type == "words" or column.name in about.labels
    ]
    levels = _levels(table, how, asked) if asked else {}
    fields, left = [], []
    for column in report.columns:
        title = about.titles.get(column.name, "")[:200]
        found = levels.get(column.name, [])
        labelled = _labelled(found, about.labels.get(column.name, {}))
        if column.type == "integer" and labelled:
            described = Field(name=column.name, type="integer", categories=labelled)
        elif column.type != "words":
            kind: Any = "number" if column.type == "nothing" else column.type
            described = Field(name=column.name, type=kind)
        elif len(found) <= MOST_LEVELS and confirm(column.name, found):
            described = Field(name=column.name, type="string", categories=tuple(found))
        else:
            left.append(column.name)
            continue
        fields.append(described.model_copy(update={"title": title}))
    if not fields:
        raise InvalidData("No column can be described without its levels: --levels.")
    return Schema(fields=tuple(fields)), left


def _codebook(table: Any) -> Codebook:
    """Return what a file of a study says of its columns; nothing of another table."""
    if not isinstance(table, str | os.PathLike) or str(table).startswith("postgres"):
        return Codebook({}, {})
    path = Path(table)
    return codebook(path) if kind_of(path) in STUDIES else Codebook({}, {})


def _labelled(found: Sequence[str], labels: Mapping[float, str]) -> tuple[Level, ...]:
    """Return the labels of integers as levels, if every value that occurs has one."""
    codes = {value: text for value, text in labels.items() if _is_integer(value)}
    if not codes or not {float(text) for text in found} <= set(codes):
        return ()
    return tuple(
        Level(value=int(value), label=text[:200])
        for value, text in sorted(codes.items())
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | float) and float(value).is_integer()


def _levels(table: Any, how: How, words: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the words of each column, sorted; of one with too many, more than enough."""
    found: dict[str, set[str]] = {name: set() for name in words}
    with opened(table, how) as source:
        for _, pieces in read_again(source, (), words):
            for name, piece in zip(words, pieces, strict=True):
                if len(found[name]) <= MOST_LEVELS:
                    given = texts(piece).unique().to_pylist()
                    clean = {normal(text) for text in given if text is not None}
                    found[name] |= clean - how.dialect.codes
    return {name: sorted(values) for name, values in found.items()}
