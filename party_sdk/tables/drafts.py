"""Drafts for a person to complete: a dictionary of a table, or a mapping to one.

Each entry of a drafted mapping is marked as certain, guessed, or open to be decided.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute
from pydantic import BaseModel, ConfigDict

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.cell_values import is_missing_word
from clustering_protocols.shared_stages.statistics.units import CONVERSIONS, OTHER_NAMES
from clustering_protocols.terms.schema import Field, Level, Schema, normalise_text
from party_sdk.tables.cells import (
    DECIDING,
    SHORT_YEAR,
    THOUSANDS_LIKE,
    CellForm,
    Dialect,
    fix_minus,
    parse_limit,
    parse_number,
    read_date,
    read_number,
)
from party_sdk.tables.columns import Column, join_ids, to_texts
from party_sdk.tables.guards import lone_values, marks_totals
from party_sdk.tables.mapping import (
    MOST_LINES,
    ColumnMapping,
    DateOrder,
    OmittedRows,
    TableMapping,
    Thousands,
    fits_in_mapping,
)
from party_sdk.tables.read_options import ReadOptions
from party_sdk.tables.report import CheckReport, mask_text
from party_sdk.tables.source import SignWatch, Source
from party_sdk.tables.table_opening import (
    column_texts,
    file_of,
    open_source,
    read_excerpt,
    read_labels,
)
from party_sdk.tables.table_reading import examine_source
from party_sdk.tables.unpacking import Labels
from party_sdk.tables.variables import DictionaryDraft
from party_sdk.tables.words import (
    fold,
    fold_words,
    interpret_initials,
    meaning_of_level,
    meanings_of_column,
)

MOST_LEVELS: Final = 50
"""A text column with more distinct words is not considered a category."""

MOST_DECIMALS: Final = 6
"""Numbers with more decimals are probably computed: drafts do not state their decimals."""

_EXPONENT: Final = r"^[+-]?[\d.,]+[eE][+-]?\d+$"
_NEAR: Final = 0.75
_MOST_PAIRS: Final = 40_000
"""If there are more pairs of a field and a column, only identical names are matched."""
_MOST_TEXTS: Final = 20_000
_MOST_CELLS: Final = 200
_MOST_LETTERS: Final = 5
_THOUSANDS: Final[tuple[Thousands, ...]] = (",", ".", " ", "'")
_YEAR_LAST: Final[tuple[DateOrder, ...]] = ("day-first", "month-first")

Confirm = Callable[[str, Sequence[str]], bool]


def draft_dictionary(
    table: Any, options: ReadOptions, confirm: Confirm
) -> DictionaryDraft:
    """Draft a dictionary for a table, with one variable per column.

    A variable has the name, the type and the number of decimals, but no bounds, which
    would reveal values. Statistics files contribute titles and value labels, and an
    integer column whose values all have labels becomes a category. Numbers, dates,
    booleans and categories are proposed for clustering; other words, empty columns and
    row numbers are left out. No column is guessed to be an outcome.

    confirm: called with the name of a text column and its words, at most MOST_LEVELS;
        returns whether the words are levels of a category.

    Raises InvalidData if the table cannot be read.
    """
    with open_source(table, options) as source:
        return _draft_dictionary(source, table, options, confirm)


def _draft_dictionary(
    source: Source, table: Any, options: ReadOptions, confirm: Confirm
) -> DictionaryDraft:
    report = _read_report(source, table, options)
    mapping = options.mapping or TableMapping()
    codebook = read_labels(table)
    sign = report.dialect.get("decimal", ".")
    all_words, decimals = _read_words_and_decimals(
        source,
        options,
        word_columns=[
            column.name
            for column in report.columns
            if column.type in {"words", "date"}
            or mapping.source_of(column.name) in codebook.labels
        ],
        number_columns=[
            column.name
            for column in report.columns
            if column.type == "number" and not mapping.changes(column.name)
        ],
        sign=sign,
    )
    fields: list[Field] = []
    reasons: dict[str, str] = {}
    for column in report.columns:
        name, kind, words = column.name, column.type, all_words.get(column.name, [])
        header = mapping.source_of(name)
        labels = {} if mapping.changes(name) else codebook.labels.get(header, {})
        codes = {value: text for value, text in labels.items() if value.is_integer()}
        parts: dict[str, Any] = {"type": kind}
        reason = ""
        if kind == "integer" and codes and {*map(float, words)} <= {*codes}:
            parts["categories"] = tuple(
                Level(value=int(value), label=text[:200])
                for value, text in sorted(codes.items())
            )
        elif kind != "words":
            parts["decimals"] = decimals.get(name)
            parts["type"] = "number" if kind == "nothing" else kind
        elif len(words) <= MOST_LEVELS and confirm(name, words):
            parts |= {"type": "string", "categories": tuple(words)}
        else:
            parts |= {"type": "string", "role": "leave-out"}
            reason = "words without levels: add them (--levels), or type them"
            if len(words) > MOST_LEVELS:
                reason = f"more than {MOST_LEVELS} different words: comments, or ids"
        if kind == "date" and any(map(SHORT_YEAR.fullmatch, words)):
            reason = "two-digit years: write years with four digits, such as 2026-01-31"
        if kind == "nothing" or column.missing == report.rows:
            reason = "no value in any row"
        elif kind == "integer" and column.least is None:
            reason = "whole numbers that rise row by row: they may be ids"
        changes = {"title": codebook.titles.get(header, "")[:200]}
        if reason:
            reasons[name] = reason
            changes["role"] = "leave-out"
        fields.append(Field(name=name, **parts).model_copy(update=changes))
    # not validated, because a draft may leave out all columns but a schema may not
    schema = Schema.model_construct(fields=tuple(fields))
    return replace(DictionaryDraft.from_schema(schema), reasons=reasons)


def _read_report(source: Source, table: Any, options: ReadOptions) -> CheckReport:
    """Read a source and return its report. Raises InvalidData if it has problems."""
    path = file_of(table)
    report, _ = examine_source(source, options, "" if path is None else path.name)
    report.raise_for_problems()
    return report


def _read_words_and_decimals(
    source: Source,
    options: ReadOptions,
    word_columns: Sequence[str],
    number_columns: Sequence[str],
    sign: str,
) -> tuple[Mapping[str, list[str]], Mapping[str, int]]:
    """Return the sorted words of some columns, and the number of decimals of others."""
    words_by_column: dict[str, set[str]] = {name: set() for name in word_columns}
    decimals = dict.fromkeys(number_columns, 0)
    names = [*dict.fromkeys([*word_columns, *number_columns])]
    for pieces in read_excerpt(source, naming=names).batches if names else ():
        for name, piece in zip(names, pieces.columns, strict=True):
            if name in decimals:
                decimals[name] = max(decimals[name], _n_decimals(piece, sign))
            if name in words_by_column and len(words_by_column[name]) <= MOST_LEVELS:
                spellings = to_texts(piece).unique().to_pylist()
                words_by_column[name] |= {
                    normalise_text(text) for text in spellings if text is not None
                } - options.file_dialect.codes
    return (
        {name: sorted(values) for name, values in words_by_column.items()},
        {name: digits for name, digits in decimals.items() if digits <= MOST_DECIMALS},
    )


def _n_decimals(cells: pa.Array, sign: str) -> int:
    """Return the maximum number of decimals; MOST_DECIMALS + 1 for an exponent."""
    stripped = compute.utf8_trim_whitespace(to_texts(cells))
    if compute.any(compute.match_substring_regex(stripped, _EXPONENT)).as_py():
        return MOST_DECIMALS + 1
    split = compute.extract_regex(stripped, rf"^[+-]?\d*[{sign}](?P<digits>\d*?)0*$")
    digits = compute.utf8_length(compute.struct_field(split, "digits"))
    return compute.max(digits).as_py() or 0


class Certainty(StrEnum):
    """How certain a proposal is, and so how much review by a person it needs."""

    CERTAIN = "certain"
    GUESS = "guess"
    OPEN = "open"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LevelProposal(_Part):
    """The proposed meaning of a text in a column, shown on the operator's screen only.

    count: number of rows with this text.
    level: the dictionary's level; None if undecided or if the text means a missing
        value.
    is_missing: whether the text means a missing value.
    is_same: whether the dictionary has a level with exactly this text.
    is_limit: whether the text is a limit of detection, such as ``<0.1``.
    perhaps: the possible levels, if the text is ambiguous.
    """

    text: str
    count: int
    level: str | None = None
    is_missing: bool = False
    is_same: bool = False
    is_limit: bool = False
    perhaps: tuple[str, ...] = ()
    certainty: Certainty = Certainty.OPEN


class ColumnProposal(_Part):
    """A column of the session, with the table's column proposed as its source.

    name, title, type, unit, levels: as the dictionary defines them.
    source: the table's column; None if no column is similar enough.
    candidates: columns of the table to choose from, the most similar first.
    why: the reason why the source was chosen.
    cells: texts that mean a level (the most frequent first) or a missing value.
    convert: the name of a conversion of units; empty if no known conversion applies.
    thousands, dates, minus: number and date formats, where they differ from the file's.
    two_readings: the shape of an ambiguous number such as 9.370, or an empty string.
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
        """Whether a person still has to decide something about this column."""
        has_open_cell = any(cell.certainty is Certainty.OPEN for cell in self.cells)
        return self.source is None or has_open_cell or bool(self.two_readings)

    def to_mapping(self) -> ColumnMapping:
        """Return the mapping of the column, which is empty if nothing changes."""
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
    """A draft of a mapping, in which some decisions are left to a person.

    file: the name of the table's file, without its folder.
    dialect: the settings of the file's dialect that are known.
    columns: the columns of the session, in the dictionary's order.
    unused: columns of the table that are the source of no column of the session.
    totals: cells that mark a row of totals, by the name of their column.
    copies: line or row numbers of rows that repeat an earlier row, including its id.
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
        """The number of columns with open decisions."""
        return sum(column.is_open for column in self.columns)

    def to_mapping(self) -> TableMapping:
        """Return the mapping that contains everything certain or guessed."""
        pairs = ((column.name, column.to_mapping()) for column in self.columns)
        return TableMapping(
            file=self.dialect,
            columns={
                name: mapping for name, mapping in pairs if mapping != ColumnMapping()
            },
            leave_out=OmittedRows(lines=self.copies, values=self.totals),
        )


def draft_mapping(table: Any, options: ReadOptions, schema: Schema) -> Proposal:
    """Draft a mapping from a table to a dictionary.

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
    with open_source(table, plain) as source:
        return _propose_mapping(source, table, plain, schema)


def _propose_mapping(
    source: Source, table: Any, options: ReadOptions, schema: Schema
) -> Proposal:
    ids, path, dialect = options.id_columns, file_of(table), options.file_dialect
    names = source.names.all
    free_columns = [name for name in names if name not in ids and fits_in_mapping(name)]
    codebook = read_labels(table)
    is_large = len(free_columns) * len(schema.fields) > _MOST_PAIRS
    matches = {
        field.name: {
            name: _compare_names(field, name, codebook.titles.get(name, ""))
            for name in ({*free_columns} & {field.name} if is_large else free_columns)
        }
        for field in schema.fields
    }
    sources = _assign_columns(matches)
    columns_read = list(dict.fromkeys([*sources.values(), *ids, *free_columns[:1]]))
    excerpt = read_excerpt(source, naming=columns_read)
    counts = _count_texts(excerpt.batches, columns_read)
    cells = pa.Table.from_batches(excerpt.batches) if excerpt.batches else None
    id_cells = (
        []
        if cells is None
        else [cells.column(columns_read.index(name)).combine_chunks() for name in ids]
    )
    forms = dict(zip(names, source.forms, strict=True))
    columns = []
    for field in schema.fields:
        field_matches = matches[field.name]
        header = sources.get(field.name)
        column = ColumnProposal(
            name=field.name,
            title=field.title,
            type="category" if field.is_category else field.type,
            unit=field.unit,
            levels=field.levels,
            candidates=tuple(
                sorted(field_matches, key=lambda name: -field_matches[name].score)
            ),
        )
        if header is not None:
            draft = _draft_cells(
                field, header, counts[header], forms[header], dialect.codes, codebook
            )
            draft |= {"source": header, **field_matches[header]._asdict()}
            del draft["score"]
            column = column.model_copy(update=draft)
        columns.append(column)
    label_columns = dict.fromkeys([*ids, *free_columns[:1]])
    totals = {name: tuple(filter(marks_totals, counts[name])) for name in label_columns}
    format_description = source.format_description.items()
    layout = {n: v for n, v in format_description if n in {"sheet", "skip"}}
    return Proposal(
        file="" if path is None else path.name,
        rows=sum(map(len, excerpt.batches)),
        dialect=replace(dialect, **layout),
        columns=tuple(columns),
        unused=tuple(name for name in free_columns if name not in sources.values()),
        totals=dict([item for item in totals.items() if item[1]][:1]),
        copies=_find_copies(source, id_cells),
    )


def _count_texts(
    batches: Sequence[pa.RecordBatch], names: Sequence[str]
) -> dict[str, Counter[str]]:
    counters = {name: Counter[str]() for name in names}
    for batch in batches:
        for counter, piece in zip(counters.values(), batch.columns, strict=True):
            for entry in compute.value_counts(to_texts(piece)).to_pylist():
                if entry["values"] is None:
                    continue
                text = normalise_text(entry["values"])
                if text in counter or len(counter) < _MOST_TEXTS:
                    counter[text] += entry["counts"]
    return counters


def _find_copies(source: Source, ids: Sequence[pa.Array]) -> tuple[int, ...]:
    """Return the line numbers of rows that repeat an earlier row, including its id.

    ids: the cells of the id columns. The result is empty without them, and if it is
        uncertain on which lines rows begin.
    """
    if not ids:
        return ()
    keys, is_empty = join_ids(ids)
    groups = _group_rows([keys])
    rows = np.flatnonzero((np.bincount(groups)[groups] > 1) & ~is_empty)
    if not len(rows):
        return ()
    excerpt = read_excerpt(source, naming=source.names.all)
    table, indices = pa.Table.from_batches(excerpt.batches), pa.array(rows)
    groups = _group_rows(
        column.take(indices).combine_chunks() for column in table.columns
    )
    first: Any = np.unique(groups, return_index=True)[1]
    copies = np.delete(rows, first)[:MOST_LINES].tolist()
    lines = excerpt.locations.numbers_of_rows(copies)
    return tuple(line for line in lines if line is not None)


def _group_rows(columns: Iterable[pa.Array]) -> IntArray:
    """Return int64 (n,): a number for each row, the same for rows with equal cells."""
    groups: Any = 0
    for cells in columns:
        coded = to_texts(cells).dictionary_encode(null_encoding="encode")
        codes = coded.indices.to_numpy().astype(np.int64)
        combined = groups * len(coded.dictionary) + codes
        groups = np.unique(combined, return_inverse=True)[1]
    return np.asarray(groups, dtype=np.int64)


class _Match(NamedTuple):
    """The similarity of a column to a field, from 0 to 1, and the reason for it."""

    score: float
    certainty: Certainty
    why: str


def _assign_columns(matches: Mapping[str, Mapping[str, _Match]]) -> dict[str, str]:
    scored = [
        (-match.score, index, field, name)
        for index, (field, field_matches) in enumerate(matches.items())
        for name, match in field_matches.items()
        if match.certainty is not Certainty.OPEN
    ]
    sources: dict[str, str] = {}
    for _, _, field, name in sorted(scored, key=lambda entry: entry[:2]):
        if field not in sources and name not in sources.values():
            sources[field] = name
    return sources


def _compare_names(field: Field, name: str, title: str) -> _Match:
    field_key, column_key = fold(field.name), fold(name)
    if name == field.name:
        return _Match(1.0, Certainty.CERTAIN, "the same name")
    if field_key and field_key == column_key:
        why = "the same name except for case, accents and signs"
        return _Match(0.99, Certainty.CERTAIN, why)
    if field.title and fold(field.title) in {column_key, fold(title)} - {""}:
        return _Match(0.98, Certainty.CERTAIN, "its title")
    meanings = meanings_of_column(field.name) | meanings_of_column(field.title)
    if meanings & meanings_of_column(name):
        return _Match(0.9, Certainty.GUESS, "the same word in another language")
    dated = {f"{field_key}date", f"date{field_key}", f"{field_key}datum"}
    if field.type == "date" and field_key and column_key in dated:
        return _Match(0.9, Certainty.GUESS, "its name with 'date'")
    if field_key and field_key in fold_words(title):
        return _Match(0.85, Certainty.GUESS, "its title contains the name")
    keys = field_key, fold(field.title)
    similarity = max(_similarity(key, column_key) for key in keys)
    if similarity >= _NEAR:
        return _Match(0.8 * similarity, Certainty.GUESS, "its spelling")
    if fold_words(field.title) & fold_words(name) - {"of", "at", "the", "in"}:
        return _Match(0.5, Certainty.GUESS, "a word of its title")
    return _Match(0.5 * similarity, Certainty.OPEN, "")


def _similarity(a: str, b: str) -> float:
    if not a or not b:
        return 0.0
    if min(len(a), len(b)) >= 4 and (a in b or b in a):
        return 0.8
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def _draft_cells(
    field: Field,
    source: str,
    counts: Mapping[str, int],
    form: CellForm,
    codes: frozenset[str],
    codebook: Labels,
) -> dict[str, Any]:
    candidates = {
        text: count
        for text, count in counts.items()
        if text not in codes - set(field.levels)
        and not marks_totals(text)
        and fits_in_mapping(text)
    }
    draft: dict[str, Any] = {}
    if field.is_category or field.type == "boolean":
        labels = codebook.labels.get(source, {})
        ordered = sorted(candidates.items(), key=lambda item: -item[1])
        cells = _leave_letters_open(
            field, [_match_level(field, *item, labels) for item in ordered]
        )
    elif field.type == "date":
        draft["dates"] = _find_date_orders(list(candidates), form.dates or "year-first")
        cells = [
            _propose_missing(t, n) for t, n in candidates.items() if is_missing_word(t)
        ]
    else:
        if any(map(fix_minus, candidates)):
            draft["minus"] = "any"
            candidates = {fix_minus(text) or text: n for text, n in candidates.items()}
        watch = SignWatch(form)
        if not form.is_decided:
            watch.add_batch(pa.array(candidates, pa.large_string()), 0)
        if watch.has_two_readings:
            draft["two_readings"] = watch.text
            candidates = {}
        elif text := _find_two_readings(
            candidates, form, sign := _find_thousands(candidates, form)
        ):
            draft["two_readings"] = mask_text(text)
            candidates = {}
        else:
            draft["thousands"] = sign
        cells = list(_match_numbers(candidates, form, draft.get("thousands")))
    draft["cells"] = tuple(cells[:_MOST_CELLS])
    draft["convert"] = _conversion_of(field, source, codebook.titles.get(source, ""))
    return draft


def _match_numbers(
    counts: Mapping[str, int], form: CellForm, thousands: str | None
) -> Iterator[LevelProposal]:
    values: dict[float, tuple[str, int]] = {}
    for text, count in counts.items():
        value = _number_in(text, form)
        if thousands is not None and (number := read_number(text, None, thousands)):
            value = parse_number(number)
        if value is None and is_missing_word(text):
            yield _propose_missing(text, count)
        elif value is None:
            is_limit = parse_limit(text) is not None
            yield LevelProposal(text=text, count=count, is_limit=is_limit)
        elif np.isfinite(value):
            values[value] = text, count
    sample = np.repeat(list(values), [min(count, 50) for _, count in values.values()])
    for lone in lone_values(sample):
        yield _propose_missing(*values[lone.value])


def _find_thousands(counts: Mapping[str, int], form: CellForm) -> Thousands | None:
    candidates = [text for text in counts if parse_limit(text) is None]
    unreadable_texts = [text for text in candidates if _number_in(text, form) is None]
    for sign in _THOUSANDS:
        numbers = [read_number(text, None, sign) for text in unreadable_texts]
        reads_most = sum(n is not None for n in numbers) > len(numbers) / 2
        if reads_most and sign != (form.decimal if form.decimal == "," else ""):
            return sign
    return None


def _find_two_readings(
    counts: Mapping[str, int], form: CellForm, sign: Thousands | None
) -> str:
    """Return a number such as 14,189 that remains ambiguous in a column with 14.2.

    Returns an empty string if no number of the column has a fraction, or if a number
    such as 1,234.5 shows that ``sign`` separates thousands.
    """
    if sign is None or not any(
        re.fullmatch(DECIDING, text.strip()) for text in counts if sign not in text
    ):
        return ""
    unread = [text for text in counts if _number_in(text, form) is None]
    grouped = [text for text in unread if read_number(text, None, sign)]
    is_open = all(re.fullmatch(THOUSANDS_LIKE, text.strip()) for text in grouped)
    return grouped[0] if is_open else ""


def _number_in(text: str, form: CellForm) -> float | None:
    return parse_number(text.replace(",", ".") if form.decimal == "," else text)


def _propose_missing(text: str, count: int) -> LevelProposal:
    guess = Certainty.GUESS
    return LevelProposal(text=text, count=count, is_missing=True, certainty=guess)


def _match_level(
    field: Field, text: str, count: int, labels: Mapping[float, str]
) -> LevelProposal:
    """Propose a level for a text; ``labels`` are the value labels of a statistics file."""
    propose = partial(LevelProposal, text=text, count=count)
    spellings = Column(field.name, "words", field).spellings or {}
    if text in spellings or (field.type == "boolean" and text.lower() in spellings):
        return propose(level=text, is_same=True, certainty=Certainty.CERTAIN)
    value = parse_number(text)
    word = text if value is None else labels.get(value, text)
    level, certainty = _find_level(_labels_of(field), word)
    if level is None and is_missing_word(word):
        return _propose_missing(text, count)
    return propose(level=level, certainty=certainty)


def _leave_letters_open(
    field: Field, cells: Sequence[LevelProposal]
) -> list[LevelProposal]:
    """Leave all one-letter texts undecided if one of them may mean another level.

    If one letter is misread, the others probably are, too.
    """
    letters = {
        cell.text: letter
        for cell in cells
        if len(letter := fold(cell.text)) == 1 and letter.isalpha()
    }
    initials = list(dict.fromkeys(letters.values()))
    if all(cell.is_same for cell in cells) or len(initials) > _MOST_LETTERS:
        return list(cells)
    levels = {
        meaning: level
        for level, label in _labels_of(field).items()
        if (meaning := meaning_of_level(level) or meaning_of_level(label))
    }
    meanings = {
        letter: {levels[meaning] for meaning in readings}
        for letter, readings in interpret_initials(initials, levels).items()
    }
    if not any(
        meanings.get(letters[cell.text], set())
        - {levels.get(meaning_of_level(cell.level) or "")}
        for cell in cells
        if cell.text in letters and cell.level is not None
    ):
        return list(cells)
    return [
        LevelProposal(
            text=cell.text,
            count=cell.count,
            perhaps=tuple(sorted(meanings.get(letters[cell.text], ()))),
        )
        if cell.text in letters
        else cell
        for cell in cells
    ]


def _labels_of(field: Field) -> dict[str, str]:
    labels = dict(zip(field.levels, field.labels, strict=True))
    return labels or {"yes": "yes", "no": "no"}


def _find_level(levels: Mapping[str, str], text: str) -> tuple[str | None, Certainty]:
    key = fold(text)
    matches = [
        level
        for level, label in levels.items()
        if key and key in {fold(level), fold(label)}
    ]
    if len(matches) == 1:
        return matches[0], Certainty.CERTAIN
    is_letter = len(key) == 1
    if (meaning := meaning_of_level(text)) is not None:
        matches = [
            level
            for level, label in levels.items()
            if meaning in {meaning_of_level(level), meaning_of_level(label)}
        ]
        if len(matches) == 1:
            return matches[0], Certainty.GUESS if is_letter else Certainty.CERTAIN
    if is_letter:
        matches = [level for level in levels if fold(level).startswith(key)]
        if len(matches) == 1:
            return matches[0], Certainty.GUESS
        return None, Certainty.OPEN
    similarities = {
        level: max(
            SequenceMatcher(None, key, fold(word), autojunk=False).ratio()
            for word in (level, label)
        )
        for level, label in levels.items()
    }
    best = max(similarities, key=lambda level: similarities[level], default=None)
    if best is not None and similarities[best] >= _NEAR and len(key) > 2:
        return best, Certainty.GUESS
    return None, Certainty.OPEN


def _find_date_orders(cells: Sequence[str], order: str) -> tuple[DateOrder, ...]:
    if not cells or all(read_date(text, (order,)) for text in cells):
        return ()
    for first_order in _YEAR_LAST:
        orders: tuple[DateOrder, ...] = (first_order, "year-first", "excel")
        if sum(read_date(text, orders) is not None for text in cells) > len(cells) / 2:
            return tuple(o for o in orders if any(read_date(t, (o,)) for t in cells))
    return ()


def _conversion_of(field: Field, name: str, title: str) -> str:
    if not field.is_measured:
        return ""
    brackets = re.findall(r"[(\[]([^()\[\]]+)[)\]]", field.title)
    unit = _fold_unit(field.unit or (brackets[-1] if brackets else ""))
    description = f"{name} {title}"
    for conversion in CONVERSIONS:
        if (
            conversion.quantity
            and conversion.matches(f"{description} {field.name} {field.title}")
            and unit in map(_fold_unit, _names_of(conversion.second))
            and _mentions_unit(description, conversion.first)
            and not _mentions_unit(description, conversion.second)
        ):
            return conversion.name
    return ""


def _names_of(unit: str) -> tuple[str, ...]:
    return (unit, *OTHER_NAMES.get(unit, ()))


def _fold_unit(unit: str) -> str:
    return re.sub(r"[\s_.]+", "", _plain_micro(unit))


def _plain_micro(text: str) -> str:
    return text.casefold().replace("µ", "u").replace("μ", "u")


def _mentions_unit(text: str, unit: str) -> bool:
    """Return whether a text names the unit itself, not a longer unit that contains it."""
    names = (re.escape(_plain_micro(name)) for name in _names_of(unit))
    loose = "|".join(names).replace("/", r"[/_ ]?(?:per|pro)?[_ ]?")
    return (
        re.search(rf"(?<![a-z/])(?:{loose})(?![a-z/])", _plain_micro(text)) is not None
    )


_ID_WORDS: Final = fold_words(
    "id ids nr no number code key pid mrn patient customer client case sample subject "
    "participant person record row kunde kundennummer fall probe"
)
_MOST_WORDS: Final = 12
"""A first draft does not cluster a text column with more distinct words."""


class FirstDraft(NamedTuple):
    """The options and the dictionary drafted for a table.

    left_out: the reason for each column that is not clustered, by its name.
    n_gaps: number of missing values in the clustered columns.
    """

    options: ReadOptions
    schema: Schema
    left_out: Mapping[str, str]
    n_gaps: int


def draft_options(
    table: Path, options: ReadOptions, leave_out: Collection[str] = ()
) -> FirstDraft:
    """Draft the options and the dictionary of a table without asking anyone.

    Columns with few distinct words become categories. Dates, comments, row numbers and
    constant columns are left out.

    leave_out: the columns with the true classes.

    Raises InvalidData if the table cannot be read or no column can be clustered.
    """
    # row numbers are not an error here: they become the ids or are left out
    options = replace(options, allow=(*options.allow, "running-number"))
    with open_source(table, options) as source:
        report = _read_report(source, table, options)
        columns = report.columns
        if not options.id_columns and (id_column := _find_id_column(source, report)):
            options = replace(options, id_column=id_column)
            columns = tuple(column for column in columns if column.name != id_column)
        draft = _draft_dictionary(
            source, table, options, lambda _, words: 1 < len(words) <= _MOST_WORDS
        )
    reasons = {**draft.reasons, **dict.fromkeys(leave_out, "true classes")}
    for column in columns:
        if column.type == "date":
            reasons[column.name] = "dates"
        elif column.least is not None and column.least == column.largest:
            reasons[column.name] = "one value"
    draft = draft.with_changes({name: {"role": "leave-out"} for name in reasons})
    if not any(variable.role == "cluster" for variable in draft.variables):
        raise InvalidData(
            "No column can be clustered: it would need numbers, yes-or-no values, or "
            f"at most {_MOST_WORDS} different words. "
            + "; ".join(f"{name!r}: {why}" for name, why in reasons.items())
        )
    schema = draft.to_schema()
    used = set(schema.clustered_part.names)
    n_gaps = sum(column.missing for column in columns if column.name in used)
    return FirstDraft(replace(options, schema=schema), schema, reasons, n_gaps)


def find_id_column(
    table: Any, options: ReadOptions, exclude: Collection[str] = ()
) -> tuple[list[str], str | None]:
    """Return a table's columns, and the one that seems to contain unique ids, if any.

    The first column is a candidate if it contains words. Any other column is a
    candidate if it contains rising whole numbers, or if it has a name such as ``id``
    and contains words or whole numbers.

    exclude: columns to ignore.

    A table that cannot be read has no columns.
    """
    try:
        with open_source(table, options) as source:
            report, _ = examine_source(source, options, "")
            columns = tuple(c for c in report.columns if c.name not in exclude)
            report = report.model_copy(update={"columns": columns})
            return [c.name for c in columns], _find_id_column(source, report)
    except InvalidData:
        return [], None


def _find_id_column(source: Source, report: CheckReport) -> str | None:
    for index, column in enumerate(report.columns):
        has_id_name = bool(fold_words(column.name) & _ID_WORDS)
        rises = column.type == "integer" and column.least is None
        has_words = column.type == "words" and (has_id_name or index == 0)
        if column.missing or not (
            has_words or rises or (has_id_name and column.type == "integer")
        ):
            continue
        if len(set(column_texts(source, column.name))) == report.rows:
            return column.name
    return None
