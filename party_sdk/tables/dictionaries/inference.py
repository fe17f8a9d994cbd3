"""Data dictionaries as files: read, and drafted from a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute
from pydantic import ValidationError

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.validation_messages import explain
from clustering_protocols.terms.schema import Field, Level, Schema, normal
from party_sdk.tables.columns import texts
from party_sdk.tables.dictionaries.dictionary_draft import DictionaryDraft, read_whole
from party_sdk.tables.formats.study_files import STUDIES, StudyLabels
from party_sdk.tables.isolation import parent
from party_sdk.tables.mapping.model import TableMapping
from party_sdk.tables.parsing.encoding import kind_of
from party_sdk.tables.read_options import How
from party_sdk.tables.report import ColumnReport
from party_sdk.tables.single_columns import read_cells
from party_sdk.tables.source_opening import file_of
from party_sdk.tables.table_opening import examine

MOST_LEVELS: Final = 50
"""A column of words with more of them is hardly a category."""

MOST_DECIMALS: Final = 6
"""Numbers with more were computed, not rounded: nothing is written of their digits."""

_EXPONENT: Final = r"^[+-]?[\d.,]+[eE][+-]?\d+$"

Confirm = Callable[[str, Sequence[str]], bool]


def read_schema(path: Path) -> Schema:
    """Return the dictionary in a file.

    Raises InvalidData if there is none, or it contradicts itself.
    """
    try:
        return Schema.model_validate_json(read_whole(path))
    except OSError:
        raise InvalidData(f"There is no dictionary {path.name!r}.") from None
    except ValidationError as error:
        raise InvalidData(f"{path.name!r} is no dictionary: {explain(error)}") from None


def read_draft(path: Path) -> DictionaryDraft:
    """Return the draft in a file: a dictionary, or a table of variables (``.csv``).

    Raises InvalidData if it is neither.
    """
    if path.suffix.lower() == ".csv":
        return DictionaryDraft.read_csv(path)
    return DictionaryDraft.of(read_schema(path))


def infer(table: Any, how: How, confirm: Confirm) -> DictionaryDraft:
    """Return the draft of a dictionary: a row for each column of a table.

    Names, types and digits behind the point: bounds would tell of the rows. Files of
    studies know more: titles, and labels of values; integers that all have labels are a
    category. Numbers, dates, yes and no and levels are proposed to be clustered. Left out
    are words without levels, columns without a value and what looks like row numbers. No
    name is taken for that of an outcome.

    confirm: called with a column of few words and these words; whether they are its
        levels.

    Raises InvalidData if the table cannot be read.
    """
    report, _ = examine(table, how)
    report.require_none()
    about = codebook_of(table, how.mapping)
    asked = [
        column.name
        for column in report.columns
        if column.type == "words" or column.name in about.labels
    ]
    computed = how.mapping or TableMapping()
    rounded = [
        column.name
        for column in report.columns
        if column.type == "number" and not computed.changes(column.name)
    ]
    sign = report.dialect.get("decimal", ".")
    levels, decimals = _read_cells(table, how, asked, rounded, sign)
    fields: list[Field] = []
    reasons: dict[str, str] = {}
    for column in report.columns:
        title = about.titles.get(column.name, "")[:200]
        found = levels.get(column.name, [])
        labelled = _build_levels(found, about.labels.get(column.name, {}))
        if column.type == "integer" and labelled:
            described = Field(name=column.name, type="integer", categories=labelled)
        elif column.type != "words":
            kind: Any = "number" if column.type == "nothing" else column.type
            digits = decimals.get(column.name)
            described = Field(name=column.name, type=kind, decimals=digits)
        elif len(found) <= MOST_LEVELS and confirm(column.name, found):
            described = Field(name=column.name, type="string", categories=tuple(found))
        else:
            described = Field(name=column.name, type="string", role="leave-out")
            reasons[column.name] = _why_words(found)
        if why := _why_numbers(column, report.rows):
            described = described.model_copy(update={"role": "leave-out"})
            reasons[column.name] = why
        fields.append(described.model_copy(update={"title": title}))
    schema = Schema.model_construct(fields=tuple(fields))  # all may be left out yet
    return replace(DictionaryDraft.of(schema), reasons=reasons)


def _why_words(found: Sequence[str]) -> str:
    if len(found) > MOST_LEVELS:
        return f"more than {MOST_LEVELS} different words: comments, or ids"
    return "words without levels; --levels writes them, or you do"


def _why_numbers(column: ColumnReport, n_rows: int) -> str:
    """Return why a column that is read as numbers is left out; empty where it is not."""
    if column.type == "nothing" or column.missing == n_rows:
        return "no value in any row"
    if column.type == "integer" and column.least is None:
        return "whole numbers that rise row by row: they may name the rows"
    return ""


def _read_cells(
    table: Any, how: How, words: Sequence[str], rounded: Sequence[str], sign: str
) -> tuple[Mapping[str, list[str]], Mapping[str, int]]:
    """Return the words of columns, sorted, and digits behind the point of others.

    Of a column with too many words there are more than enough; one with too many digits
    is left out. The table is read once.
    """
    found: dict[str, set[str]] = {name: set() for name in words}
    most = dict.fromkeys(rounded, 0)
    names = [*dict.fromkeys([*words, *rounded])]
    for pieces in read_cells(table, how, naming=names).batches if names else ():
        for name, piece in zip(names, pieces.columns, strict=True):
            if name in most:
                most[name] = max(most[name], _n_decimals(piece, sign))
            if name in found and len(found[name]) <= MOST_LEVELS:
                found[name] |= _words_of(piece) - how.file_dialect.codes
    return (
        {name: sorted(values) for name, values in found.items()},
        {name: digits for name, digits in most.items() if digits <= MOST_DECIMALS},
    )


def _words_of(cells: pa.Array) -> set[str]:
    given = texts(cells).unique().to_pylist()
    return {normal(text) for text in given if text is not None}


def _n_decimals(cells: pa.Array, sign: str) -> int:
    """Return how many digits behind the point the cells have, zeros at the end left out.

    One more than is written anywhere, where a number has an exponent.
    """
    said = compute.utf8_trim_whitespace(texts(cells))
    if compute.any(compute.match_substring_regex(said, _EXPONENT)).as_py():
        return MOST_DECIMALS + 1
    split = compute.extract_regex(said, rf"^[+-]?\d*[{sign}](?P<digits>\d*?)0*$")
    digits = compute.utf8_length(compute.struct_field(split, "digits"))
    return compute.max(digits).as_py() or 0


def codebook_of(table: Any, mapping: TableMapping | None = None) -> StudyLabels:
    """Return what a file of a study says of its columns; nothing of another table.

    mapping: gives columns their names; labels of cells that it changes are none.
    """
    path = file_of(table)
    if path is None or kind_of(path) not in STUDIES:
        return StudyLabels({}, {})
    found = parent.codebook(path)
    if mapping is None:
        return found
    named = {mapping.source_of(name): name for name in mapping.columns}
    return StudyLabels(
        {named.get(name, name): title for name, title in found.titles.items()},
        {
            named.get(name, name): labels
            for name, labels in found.labels.items()
            if not mapping.changes(named.get(name, name))
        },
    )


def _build_levels(
    found: Sequence[str], labels: Mapping[float, str]
) -> tuple[Level, ...]:
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
