"""Drafts for a person to complete: the dictionary of a table, and a mapping to one.

A draft says what is certain and what is a guess; what it leaves open a person says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute
from pydantic import BaseModel, ConfigDict

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.shared_stages.alignment.cell_values import means_nothing
from clustering_protocols.shared_stages.statistics.units import CONVERSIONS
from clustering_protocols.terms.schema import Field, Level, Schema, normal
from party_sdk.tables.cells import (
    CellForm,
    Dialect,
    number_of,
    read_date,
    read_minus,
    read_number,
    split_limit,
)
from party_sdk.tables.columns import Column, texts
from party_sdk.tables.guards import SignWatch, is_total, lone_values
from party_sdk.tables.mapping import (
    MOST_LINES,
    ColumnMapping,
    DateOrder,
    OmittedRows,
    TableMapping,
    Thousands,
    can_be_written,
)
from party_sdk.tables.read_options import ReadOptions
from party_sdk.tables.report import CheckReport
from party_sdk.tables.table_opening import (
    Excerpt,
    examine,
    read_cells,
    read_column,
    read_labels,
)
from party_sdk.tables.unpacking import Labels
from party_sdk.tables.variables import DictionaryDraft
from party_sdk.tables.words import (
    fold,
    fold_words,
    meaning_of_level,
    meanings_of_column,
    readings_of_letters,
)

MOST_LEVELS: Final = 50
"""A column of words with more of them is hardly a category."""

MOST_DECIMALS: Final = 6
"""Numbers with more were computed, not rounded: nothing is written of their digits."""

_EXPONENT: Final = r"^[+-]?[\d.,]+[eE][+-]?\d+$"
_NEAR: Final = 0.75
_MOST_PAIRS: Final = 40_000
"""Of more fields times columns, names are compared as they are."""
_MOST_TEXTS: Final = 20_000
_MOST_CELLS: Final = 200
_MOST_LETTERS: Final = 5
_MOST_COMPARED: Final = 200_000
_THOUSANDS: Final[tuple[Thousands, ...]] = (",", ".", " ", "'")
_YEAR_LAST: Final[tuple[DateOrder, ...]] = ("day-first", "month-first")

Confirm = Callable[[str, Sequence[str]], bool]


# Dictionaries


def infer(table: Any, options: ReadOptions, confirm: Confirm) -> DictionaryDraft:
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
    report, _ = examine(table, options)
    report.require_none()
    about = codebook_of(table, options.mapping)
    asked = [
        column.name
        for column in report.columns
        if column.type == "words" or column.name in about.labels
    ]
    computed = options.mapping or TableMapping()
    rounded = [
        column.name
        for column in report.columns
        if column.type == "number" and not computed.changes(column.name)
    ]
    sign = report.dialect.get("decimal", ".")
    levels, decimals = _read_cells(table, options, asked, rounded, sign)
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
            reasons[column.name] = (
                f"more than {MOST_LEVELS} different words: comments, or ids"
                if len(found) > MOST_LEVELS
                else "words without levels; --levels writes them, or you do"
            )
        why = ""
        if column.type == "nothing" or column.missing == report.rows:
            why = "no value in any row"
        elif column.type == "integer" and column.least is None:
            why = "whole numbers that rise row by row: they may name the rows"
        if why:
            described = described.model_copy(update={"role": "leave-out"})
            reasons[column.name] = why
        fields.append(described.model_copy(update={"title": title}))
    schema = Schema.model_construct(fields=tuple(fields))  # all may be left out yet
    return replace(DictionaryDraft.of(schema), reasons=reasons)


def _read_cells(
    table: Any,
    options: ReadOptions,
    words: Sequence[str],
    rounded: Sequence[str],
    sign: str,
) -> tuple[Mapping[str, list[str]], Mapping[str, int]]:
    """Return the words of columns, sorted, and digits behind the point of others.

    Of a column with too many words there are more than enough; one with too many digits
    is left out. The table is read once.
    """
    found: dict[str, set[str]] = {name: set() for name in words}
    most = dict.fromkeys(rounded, 0)
    names = [*dict.fromkeys([*words, *rounded])]
    for pieces in read_cells(table, options, naming=names).batches if names else ():
        for name, piece in zip(names, pieces.columns, strict=True):
            if name in most:
                most[name] = max(most[name], _n_decimals(piece, sign))
            if name in found and len(found[name]) <= MOST_LEVELS:
                given = texts(piece).unique().to_pylist()
                found[name] |= {
                    normal(text) for text in given if text is not None
                } - options.file_dialect.codes
    return (
        {name: sorted(values) for name, values in found.items()},
        {name: digits for name, digits in most.items() if digits <= MOST_DECIMALS},
    )


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


def codebook_of(table: Any, mapping: TableMapping | None = None) -> Labels:
    """Return what a statistics file says of its columns; nothing of another table.

    mapping: gives columns their names; labels of cells that it changes are none.
    """
    found = read_labels(table)
    if mapping is None:
        return found
    named = {mapping.source_of(name): name for name in mapping.columns}
    return Labels(
        titles={named.get(name, name): title for name, title in found.titles.items()},
        labels={
            named.get(name, name): labels
            for name, labels in found.labels.items()
            if not mapping.changes(named.get(name, name))
        },
    )


def _build_levels(
    found: Sequence[str], labels: Mapping[float, str]
) -> tuple[Level, ...]:
    """Return the labels of integers as levels, if every value that occurs has one."""
    codes = {value: text for value, text in labels.items() if float(value).is_integer()}
    if not codes or not {float(text) for text in found} <= set(codes):
        return ()
    return tuple(
        Level(value=int(value), label=text[:200])
        for value, text in sorted(codes.items())
    )


# Mappings


class Certainty(StrEnum):
    """How much a person has to look at a proposal."""

    CERTAIN = "certain"
    GUESS = "guess"
    OPEN = "open"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LevelProposal(_Part):
    """What a text in a column may stand for; its operator's own screen alone shows it.

    count: in how many rows it stands.
    level: of the dictionary; None where nobody knows yet, or it is no value.
    is_missing: whether it stands for no value.
    is_same: whether the table has it as the dictionary does.
    is_limit: whether it is a limit of detection, such as ``<0.1``.
    perhaps: levels that it may stand for, where it has several readings.
    """

    text: str
    count: int
    level: str | None = None
    is_missing: bool = False
    is_same: bool = False
    is_limit: bool = False
    perhaps: tuple[str, ...] = ()
    certainty: Certainty


class ColumnProposal(_Part):
    """A column of the session, and where the table may have it.

    name, title, type, unit: as the dictionary says.
    levels: those of the dictionary, to choose from.
    source: the column of the table; None where none is near.
    candidates: the table's columns to choose from, the nearest first.
    why: how the source was found.
    cells: texts that stand for a level or for no value, the most frequent first.
    convert: the name of a conversion of units; empty where none is known.
    thousands, dates, minus: how the column is written, where its file is written
        otherwise.
    two_readings: a number such as 9.370, where no cell says what its point is.
    """

    name: str
    title: str = ""
    type: str
    unit: str = ""
    levels: tuple[str, ...] = ()
    source: str | None = None
    certainty: Certainty = Certainty.OPEN
    why: str = ""
    candidates: tuple[str, ...] = ()
    cells: tuple[LevelProposal, ...] = ()
    convert: str = ""
    thousands: Thousands | None = None
    dates: tuple[DateOrder, ...] = ()
    minus: Literal["any"] | None = None
    two_readings: str = ""

    @property
    def is_open(self) -> bool:
        """Return whether something is left that a person has to say."""
        asks = any(cell.certainty is Certainty.OPEN for cell in self.cells)
        return self.source is None or asks or bool(self.two_readings)

    def to_mapping(self) -> ColumnMapping:
        """Return what the mapping says of the column; nothing where nothing is to say."""
        if self.source is None:
            return ColumnMapping()
        return ColumnMapping(
            source=None if self.source == self.name else self.source,
            levels={
                cell.text: cell.level
                for cell in self.cells
                if cell.level is not None and not cell.is_same
            },
            convert=self.convert or None,
            missing=tuple(cell.text for cell in self.cells if cell.is_missing),
            thousands=self.thousands,
            dates=self.dates,
            minus=self.minus,
        )


class Proposal(_Part):
    """A draft of a mapping, with all that a person chooses from.

    file: the table's name, without its folder.
    dialect: what is known of how it is written.
    columns: those of the session, in the dictionary's order.
    unused: columns of the table that nothing comes from.
    totals: rows that seem to sum up others, by the column and the cell that say so.
    copies: lines that repeat an earlier row, its id and all the rest.
    """

    file: str
    rows: int
    dialect: Dialect = Dialect()
    columns: tuple[ColumnProposal, ...]
    unused: tuple[str, ...] = ()
    totals: dict[str, tuple[str, ...]] = {}
    copies: tuple[int, ...] = ()

    @property
    def n_open(self) -> int:
        """Return of how many columns something is left to say."""
        return sum(column.is_open for column in self.columns)

    def to_mapping(self) -> TableMapping:
        """Return the draft: what is certain, and what is a guess."""
        pairs = ((each.name, each.to_mapping()) for each in self.columns)
        return TableMapping(
            file=self.dialect,
            columns={name: said for name, said in pairs if said != ColumnMapping()},
            leave_out=OmittedRows(lines=self.copies, values=self.totals),
        )


def propose(table: Any, options: ReadOptions, schema: Schema) -> Proposal:
    """Return a draft of the mapping by which a table becomes what a dictionary says.

    table: as for :func:`~party_sdk.tables.open_table`.
    options: id columns, dialect, query and guards count.
    schema: the dictionary of the session.

    Raises InvalidData if the table cannot be read.
    """
    plain = replace(
        options,
        schema=None,
        columns=None,
        preparation=None,
        mapping=None,
        dialect=options.file_dialect,
    )
    report, _ = examine(table, plain)
    if not report.columns:
        report.require_none()
    ids = options.id_columns
    free = [
        name
        for name in read_cells(table, plain).names
        if name not in ids and can_be_written(name)
    ]
    about = codebook_of(table)
    matches = _match_columns(schema.fields, free, about.titles)
    sources = _assign_columns(matches)
    named = list(dict.fromkeys([*sources.values(), *ids, *free[:1]]))
    excerpt = read_cells(table, plain, naming=named)
    counts = dict(zip(named, _count_texts(excerpt.batches, len(named)), strict=True))
    columns = []
    for field in schema.fields:
        near = matches[field.name]
        source = sources.get(field.name)
        column = ColumnProposal(
            name=field.name,
            title=field.title,
            type="category" if field.is_category else field.type,
            unit=field.unit,
            levels=field.levels,
            candidates=tuple(sorted(near, key=lambda name: -near[name].score)),
        )
        if source is not None:
            form = excerpt.forms[source]
            found = _draft_cells(
                field, source, counts[source], form, plain.dialect.codes, about
            )
            found |= {"source": source, **near[source]._asdict()}
            del found["score"]
            column = column.model_copy(update=found)
        columns.append(column)
    watched = dict.fromkeys([*ids, *free[:1]])
    totals = {name: tuple(filter(is_total, counts[name])) for name in watched}
    shown = {n: v for n, v in report.dialect.items() if n in {"sheet", "skip"}}
    return Proposal(
        file=report.file,
        rows=sum(map(len, excerpt.batches)),
        dialect=replace(plain.dialect, **shown),
        columns=tuple(columns),
        unused=tuple(name for name in free if name not in sources.values()),
        totals=dict([each for each in totals.items() if each[1]][:1]),
        copies=_find_copies(excerpt, [named.index(name) for name in ids]),
    )


def _count_texts(
    batches: Sequence[pa.RecordBatch], n_columns: int
) -> list[Counter[str]]:
    """Return how often each text stands in each column; of very many only the first."""
    found = [Counter[str]() for _ in range(n_columns)]
    for batch in batches:
        for counter, piece in zip(found, batch.columns, strict=True):
            for each in compute.value_counts(texts(piece)).to_pylist():
                if each["values"] is None:
                    continue
                text = normal(each["values"])
                if text in counter or len(counter) < _MOST_TEXTS:
                    counter[text] += each["counts"]
    return found


def _find_copies(excerpt: Excerpt, ids: Sequence[int]) -> tuple[int, ...]:
    """Return the lines of rows that repeat an earlier one, its id and all that is read.

    Of larger tables none is looked for.
    """
    if not ids or sum(map(len, excerpt.batches)) > _MOST_COMPARED:
        return ()
    seen: set[tuple[str | None, ...]] = set()
    copies: list[int] = []
    rows = (
        row
        for batch in excerpt.batches
        for row in zip(*(texts(c).to_pylist() for c in batch.columns), strict=True)
    )
    for number, row in enumerate(rows):
        if row in seen and any(row[place] for place in ids):
            copies.append(number)
        seen.add(row)
    return tuple(excerpt.locations.lookup(copies[:MOST_LINES]))


class _Match(NamedTuple):
    """How near a column of a table is to a field: from 0 to 1, and why."""

    score: float
    certainty: Certainty
    why: str


def _match_columns(
    fields: Sequence[Field], names: Sequence[str], titles: Mapping[str, str]
) -> dict[str, dict[str, _Match]]:
    """Return how near each column is to each field; of very many only equal names."""
    if len(names) * len(fields) > _MOST_PAIRS:
        known = set(names)
        return {
            f.name: {f.name: _compare(f, f.name, "")} if f.name in known else {}
            for f in fields
        }
    return {
        field.name: {
            name: _compare(field, name, titles.get(name, "")) for name in names
        }
        for field in fields
    }


def _assign_columns(matches: Mapping[str, Mapping[str, _Match]]) -> dict[str, str]:
    """Return the column of each field that has one; each is taken by its nearest field."""
    scored = [
        (-match.score, place, field, name)
        for place, (field, near) in enumerate(matches.items())
        for name, match in near.items()
        if match.certainty is not Certainty.OPEN
    ]
    found: dict[str, str] = {}
    for _, _, field, name in sorted(scored, key=lambda each: each[:2]):
        if field not in found and name not in found.values():
            found[field] = name
    return found


def _compare(field: Field, name: str, title: str) -> _Match:
    """Return how near a column of this name and title is to a field."""
    own, other = fold(field.name), fold(name)
    if name == field.name:
        return _Match(1.0, Certainty.CERTAIN, "the same name")
    if own and own == other:
        why = "the same name but for case, accents and signs"
        return _Match(0.99, Certainty.CERTAIN, why)
    if field.title and fold(field.title) in {other, fold(title)} - {""}:
        return _Match(0.98, Certainty.CERTAIN, "its title")
    meant = meanings_of_column(field.name) | meanings_of_column(field.title)
    if meant & meanings_of_column(name):
        return _Match(0.9, Certainty.GUESS, "the same word in another language")
    dated = {f"{own}date", f"date{own}", f"{own}datum"}
    if field.type == "date" and own and other in dated:
        return _Match(0.9, Certainty.GUESS, "its name with 'date'")
    if own and own in fold_words(title):
        return _Match(0.85, Certainty.GUESS, "its title speaks of it")
    near = max(_similarity(own, other), _similarity(fold(field.title), other))
    if near >= _NEAR:
        return _Match(0.8 * near, Certainty.GUESS, "its spelling")
    if fold_words(field.title) & fold_words(name) - {"of", "at", "the", "in"}:
        return _Match(0.5, Certainty.GUESS, "a word of its title")
    return _Match(0.5 * near, Certainty.OPEN, "")


def _similarity(one: str, other: str) -> float:
    if not one or not other:
        return 0.0
    if min(len(one), len(other)) >= 4 and (one in other or other in one):
        return 0.8
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _draft_cells(
    field: Field,
    source: str,
    counts: Mapping[str, int],
    form: CellForm,
    codes: frozenset[str],
    about: Labels,
) -> dict[str, Any]:
    """Return cells, unit and form of the column that a field comes from.

    counts: of the texts of the column.
    form: how it writes numbers and dates.
    codes: texts of the whole file that stand for no value.
    about: titles and labels of a file of a study.
    """
    shown = {
        text: count
        for text, count in counts.items()
        if text not in codes - set(field.levels)
        and not is_total(text)
        and can_be_written(text)
    }
    found: dict[str, Any] = {}
    if field.is_category or field.type == "boolean":
        labels = about.labels.get(source, {})
        ordered = sorted(shown.items(), key=lambda each: -each[1])
        cells = _ask_contested(
            field, [_match_level(field, *each, labels) for each in ordered]
        )
    elif field.type == "date":
        found["dates"] = _find_orders(list(shown), form.dates or "year-first")
        cells = [_missing(t, n) for t, n in shown.items() if means_nothing(t)]
    else:
        if any(map(read_minus, shown)):
            found["minus"] = "any"
            shown = {read_minus(text) or text: n for text, n in shown.items()}
        watch = SignWatch(form)
        if not form.is_decided:
            watch.see(pa.array(shown, pa.large_string()), 0)
        if watch.has_two_readings:
            found["two_readings"] = watch.text
            shown = {}
        else:
            found["thousands"] = _find_thousands(shown, form)
        cells = list(_match_numbers(shown, form, found.get("thousands")))
    found["cells"] = tuple(cells[:_MOST_CELLS])
    found["convert"] = _find_unit(field, source, about.titles.get(source, ""))
    return found


def _match_numbers(
    counts: Mapping[str, int], form: CellForm, thousands: str | None
) -> Iterator[LevelProposal]:
    """Yield the texts of a column of numbers that are none, and codes among these."""
    values: dict[float, tuple[str, int]] = {}
    for text, count in counts.items():
        value = _number_in(text, form)
        if thousands is not None and (own := read_number(text, None, thousands)):
            value = number_of(own)
        if value is None and means_nothing(text):
            yield _missing(text, count)
        elif value is None:
            yield LevelProposal(
                text=text,
                count=count,
                is_limit=split_limit(text) is not None,
                certainty=Certainty.OPEN,
            )
        elif np.isfinite(value):
            values[value] = text, count
    seen = np.repeat(list(values), [min(count, 50) for _, count in values.values()])
    for lone in lone_values(seen):
        yield _missing(*values[lone.value])


def _find_thousands(counts: Mapping[str, int], form: CellForm) -> Thousands | None:
    """Return the sign between thousands that most texts show which are no numbers."""
    plain = [text for text in counts if split_limit(text) is None]
    wrong = [text for text in plain if _number_in(text, form) is None]
    for sign in _THOUSANDS:
        read = [read_number(text, None, sign) for text in wrong]
        is_usual = sum(each is not None for each in read) > len(read) / 2
        if is_usual and sign != (form.decimal if form.decimal == "," else ""):
            return sign
    return None


def _number_in(text: str, form: CellForm) -> float | None:
    return number_of(text.replace(",", ".") if form.decimal == "," else text)


def _missing(text: str, count: int) -> LevelProposal:
    guess = Certainty.GUESS
    return LevelProposal(text=text, count=count, is_missing=True, certainty=guess)


def _match_level(
    field: Field, text: str, count: int, labels: Mapping[float, str]
) -> LevelProposal:
    """Return the level that a text stands for; labels are of numbers in a study's file."""
    spellings = Column(field.name, "words", field).spellings or {}
    if text in spellings or (field.type == "boolean" and text.lower() in spellings):
        return LevelProposal(
            text=text,
            count=count,
            level=text,
            is_same=True,
            certainty=Certainty.CERTAIN,
        )
    value = number_of(text)
    word = text if value is None else labels.get(value, text)
    level, certainty = _find_level(_labels_of(field), word)
    if level is None and means_nothing(word):
        return _missing(text, count)
    return LevelProposal(text=text, count=count, level=level, certainty=certainty)


def _ask_contested(field: Field, cells: Sequence[LevelProposal]) -> list[LevelProposal]:
    """Return proposals of one column, letters open where these have another reading.

    All of them are open then: whoever names one letter has named the other.
    """
    letters = {
        fold(cell.text): cell
        for cell in cells
        if len(fold(cell.text)) == 1 and fold(cell.text).isalpha()
    }
    if all(cell.is_same for cell in cells) or len(letters) > _MOST_LETTERS:
        return list(cells)
    levels = {
        meaning: level
        for level, label in _labels_of(field).items()
        if (meaning := meaning_of_level(level) or meaning_of_level(label))
    }
    meant = {
        letter: {levels[meaning] for meaning in found}
        for letter, found in readings_of_letters(letters, levels).items()
    }
    if not any(
        cell.level is not None
        and meant.get(letter, set()) - {levels.get(meaning_of_level(cell.level) or "")}
        for letter, cell in letters.items()
    ):
        return list(cells)
    return [
        LevelProposal(
            text=cell.text,
            count=cell.count,
            perhaps=tuple(sorted(meant.get(fold(cell.text), ()))),
            certainty=Certainty.OPEN,
        )
        if cell in letters.values()
        else cell
        for cell in cells
    ]


def _labels_of(field: Field) -> dict[str, str]:
    """Return the levels of a field, and what they are called."""
    known = dict(zip(field.levels, field.labels, strict=True))
    return known or {"yes": "yes", "no": "no"}


def _find_level(levels: Mapping[str, str], text: str) -> tuple[str | None, Certainty]:
    """Return the level that a text stands for, and how certain that is."""
    own = fold(text)
    same = [
        level
        for level, label in levels.items()
        if own and own in {fold(level), fold(label)}
    ]
    if len(same) == 1:
        return same[0], Certainty.CERTAIN
    short = len(own) == 1
    if (meant := meaning_of_level(text)) is not None:
        same = [
            level
            for level, label in levels.items()
            if meant in {meaning_of_level(level), meaning_of_level(label)}
        ]
        if len(same) == 1:
            return same[0], Certainty.GUESS if short else Certainty.CERTAIN
    if short:
        same = [level for level in levels if fold(level).startswith(own)]
        return (same[0], Certainty.GUESS) if len(same) == 1 else (None, Certainty.OPEN)
    near = {
        level: max(
            SequenceMatcher(None, own, fold(each), autojunk=False).ratio()
            for each in (level, label)
        )
        for level, label in levels.items()
    }
    best = max(near, key=lambda level: near[level], default=None)
    if best is not None and near[best] >= _NEAR and len(own) > 2:
        return best, Certainty.GUESS
    return None, Certainty.OPEN


def _find_orders(given: Sequence[str], order: str) -> tuple[DateOrder, ...]:
    """Return the orders of dates that read most texts, if the file's does not read all."""
    if not given or all(read_date(text, (order,)) for text in given):
        return ()
    for usual in _YEAR_LAST:
        orders: tuple[DateOrder, ...] = (usual, "year-first", "excel")
        if sum(read_date(text, orders) is not None for text in given) > len(given) / 2:
            return tuple(
                order
                for order in orders
                if any(read_date(text, (order,)) for text in given)
            )
    return ()


def _find_unit(field: Field, name: str, title: str) -> str:
    """Return the conversion from the unit that a column names to the field's, if any."""
    if not field.is_measured:
        return ""
    brackets = re.findall(r"[(\[]([^()\[\]]+)[)\]]", field.title)
    wanted = _fold_unit(field.unit or (brackets[-1] if brackets else ""))
    here = f"{name} {title}"
    for each in CONVERSIONS:
        if (
            each.quantity
            and each.is_named(f"{here} {field.name} {field.title}")
            and _fold_unit(each.second) == wanted
            and _speaks_of(here, each.first)
            and not _speaks_of(here, each.second)
        ):
            return each.name
    return ""


def _fold_unit(unit: str) -> str:
    return re.sub(r"[\s_.]+", "", _plain_micro(unit))


def _plain_micro(text: str) -> str:
    return text.casefold().replace("µ", "u").replace("μ", "u")


def _speaks_of(text: str, unit: str) -> bool:
    """Return whether a text names a unit, and no other one that holds its letters."""
    wanted = re.escape(_plain_micro(unit))
    loose = wanted.replace("/", r"[/_ ]?(?:per|pro)?[_ ]?")
    return re.search(rf"(?<![a-z/]){loose}(?![a-z/])", _plain_micro(text)) is not None


_ID_WORDS: Final = fold_words(
    "id ids nr no number code key pid mrn patient customer client case sample subject "
    "participant person record row kunde kundennummer fall probe"
)
_MOST_WORDS: Final = 12
"""A column with more different words says little of clusters."""


class FirstLook(NamedTuple):
    """A table as its draft reads it.

    left_out: why each column is not clustered.
    n_gaps: empty cells of the columns that are.
    """

    options: ReadOptions
    schema: Schema
    left_out: Mapping[str, str]
    n_gaps: int


def look(
    table: Path, options: ReadOptions, leave_out: Collection[str] = ()
) -> FirstLook:
    """Return how a table is read whose dictionary is drafted without a question.

    Words of few kinds become levels. Left out are dates, comments, row numbers and
    columns with one value.

    leave_out: columns to leave out besides.

    Raises InvalidData if the table cannot be read, or nothing of it can be clustered.
    """
    # what counts rows is left out of the draft, unless it becomes the id
    options = replace(options, allow=(*options.allow, "running-number"))
    report, _ = examine(table, options)
    report.require_none()
    if not options.id_columns and (name := find_id_column(table, options, report)):
        options = replace(options, id_column=name)
        report, _ = examine(table, options)
    draft = infer(table, options, lambda _, words: 1 < len(words) <= _MOST_WORDS)
    reasons = {**draft.reasons, **dict.fromkeys(leave_out, "true classes")}
    for column in report.columns:
        if column.type == "date":
            reasons[column.name] = "dates"
        elif column.least is not None and column.least == column.largest:
            reasons[column.name] = "one value"
    draft = draft.change({name: {"role": "leave-out"} for name in reasons})
    if not any(variable.role == "cluster" for variable in draft.variables):
        raise InvalidData(
            "No column can be clustered: numbers, yes or no, or words of "
            f"{_MOST_WORDS} kinds at most. "
            + "; ".join(f"{name!r}: {why}" for name, why in reasons.items())
        )
    schema = draft.schema()
    used = set(schema.clustered_part.names)
    n_gaps = sum(column.missing for column in report.columns if column.name in used)
    return FirstLook(replace(options, schema=schema), schema, reasons, n_gaps)


def find_id_column(
    table: Path, options: ReadOptions, report: CheckReport
) -> str | None:
    """Return the column that names the rows, each once; None where none looks so.

    It comes first, or its name says so, and it holds words or whole numbers.
    """
    for place, column in enumerate(report.columns):
        named = bool(fold_words(column.name) & _ID_WORDS)
        rises = column.type == "integer" and column.least is None
        words = column.type == "words" and (named or place == 0)
        if column.missing or not (
            words or rises or (named and column.type == "integer")
        ):
            continue
        cells = read_column(table, column.name, options)
        if len(set(cells)) == report.rows:
            return column.name
    return None
