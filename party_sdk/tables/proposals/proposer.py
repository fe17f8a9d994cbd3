"""Drafts the mapping of a table against a dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute

from clustering_protocols.terms.schema import Field, Schema, normal
from party_sdk.tables.columns import texts
from party_sdk.tables.dictionaries.inference import codebook_of
from party_sdk.tables.formats.study_files import StudyLabels
from party_sdk.tables.guards import is_total
from party_sdk.tables.mapping.model import MOST_LINES, Limit, can_be_written
from party_sdk.tables.parsing.dialect import Dialect
from party_sdk.tables.proposals.cell_matches import find_forms, find_unit, match_cells
from party_sdk.tables.proposals.column_matches import (
    ColumnMatch,
    candidates_of,
    match_columns,
)
from party_sdk.tables.proposals.proposal import ColumnProposal, Proposal
from party_sdk.tables.read_options import How
from party_sdk.tables.report import CheckReport
from party_sdk.tables.single_columns import Excerpt, read_cells
from party_sdk.tables.table_opening import examine

_MOST_TEXTS: Final = 20_000
_MOST_SHOWN: Final = 200
_MOST_COMPARED: Final = 200_000


def propose(
    table: Any, how: How, schema: Schema, limits: Limit | None = None
) -> Proposal:
    """Return a draft of the mapping by which a table becomes what a dictionary says.

    table: as for :func:`~party_sdk.tables.open_table`.
    how: id columns, dialect, query and guards count.
    schema: the dictionary of the session.
    limits: what limits of detection become; open by default.

    Raises InvalidData if the table cannot be read.
    """
    plain = replace(
        how,
        schema=None,
        columns=None,
        preparation=None,
        mapping=None,
        dialect=how.file_dialect,
    )
    report, _ = examine(table, plain)
    if not report.columns:
        report.require_none()
    names = read_cells(table, plain).said.names
    about = codebook_of(table)
    ids = how.id_columns
    free = [name for name in names if name not in ids and can_be_written(name)]
    found = match_columns(schema.fields, free, about.titles)
    sources = [name for name, _ in found.values()]
    named = list(dict.fromkeys([*sources, *ids, *free[:1]]))
    read = read_cells(table, plain, naming=named)
    n_rows, counts = _count_texts(read.batches, len(named))
    counted = dict(zip(named, counts, strict=True))
    decimal = str(report.dialect.get("decimal", "."))
    order = str(report.dialect.get("dates", "year-first"))
    columns = [
        _propose_column(
            field, found.get(field.name), free, about, counted, plain, decimal, order
        ).model_copy(update={"limits": limits})
        for field in schema.fields
    ]
    watched = [name for name in named if name in {*ids, *free[:1]}]
    return Proposal(
        file=report.file,
        rows=n_rows,
        dialect=_known_dialect(plain.dialect, report),
        columns=tuple(columns),
        unused=tuple(name for name in free if name not in sources),
        totals=dict(_find_totals(watched, counted)),
        copies=_find_copies(read, [named.index(name) for name in ids]),
    )


def _propose_column(
    field: Field,
    match: tuple[str, ColumnMatch] | None,
    names: Sequence[str],
    about: StudyLabels,
    counted: Mapping[str, Counter[str]],
    how: How,
    decimal: str,
    order: str,
) -> ColumnProposal:
    proposal = ColumnProposal(
        name=field.name,
        title=field.title,
        type="category" if field.is_category else field.type,
        unit=field.unit,
        levels=field.levels,
        candidates=candidates_of(field, names, about.titles),
    )
    if match is None:
        return proposal
    source, why = match
    labels = about.labels.get(source, {})
    codes = how.dialect.codes - set(field.levels)
    counts = {
        text: count
        for text, count in counted[source].items()
        if text not in codes and not is_total(text) and can_be_written(text)
    }
    forms = find_forms(field, counts, decimal, order)
    found = match_cells(field, counts, labels, decimal, forms.thousands)
    cells = list(found)[:_MOST_SHOWN]
    return proposal.model_copy(
        update={
            "source": source,
            "certainty": why.certainty,
            "why": why.why,
            "cells": tuple(cells),
            "convert": find_unit(field, source, about.titles.get(source, "")),
            "thousands": forms.thousands,
            "dates": forms.dates,
        }
    )


def _count_texts(
    batches: Sequence[pa.RecordBatch], n_columns: int
) -> tuple[int, list[Counter[str]]]:
    """Return the number of rows, and how often each text stands in each column.

    Of very many texts only the first are counted.
    """
    n_rows, found = 0, [Counter[str]() for _ in range(n_columns)]
    for batch in batches:
        n_rows += len(batch)
        for counter, piece in zip(found, batch.columns, strict=True):
            _count(counter, piece)
    return n_rows, found


def _count(counter: Counter[str], piece: pa.Array) -> None:
    counts = compute.value_counts(texts(piece))
    for each in counts.to_pylist():
        text = each["values"]
        if text is None:
            continue
        clean = normal(text)
        if clean in counter or len(counter) < _MOST_TEXTS:
            counter[clean] += each["counts"]


def _find_copies(read: Excerpt, ids: Sequence[int]) -> tuple[int, ...]:
    """Return the lines of rows that repeat an earlier one, its id and all that is read.

    Of larger tables none is looked for.
    """
    n_rows = sum(map(len, read.batches))
    if not ids or n_rows > _MOST_COMPARED:
        return ()
    seen: set[tuple[str | None, ...]] = set()
    copies: list[int] = []
    rows = (
        row
        for batch in read.batches
        for row in zip(*(texts(c).to_pylist() for c in batch.columns), strict=True)
    )
    for number, row in enumerate(rows):
        if row in seen and any(row[place] for place in ids):
            copies.append(number)
        seen.add(row)
    return tuple(read.said.places.of(copies[:MOST_LINES]))


def _find_totals(
    names: Sequence[str], counted: Mapping[str, Counter[str]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the cells that say that their row sums up the others."""
    for name in names:
        if said := tuple(text for text in counted[name] if is_total(text)):
            yield name, said
            return


def _known_dialect(said: Dialect, report: CheckReport) -> Dialect:
    """Return what was said of the file, with titles that were found above the names."""
    shown = {
        name: value
        for name, value in report.dialect.items()
        if name in {"sheet", "skip"}
    }
    return replace(said, **shown)
