"""A table is read to its end: numbers to the spool, what is wrong to the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.validation_messages import did_you_mean
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Preparation
from party_sdk.tables import guards, names as named
from party_sdk.tables.codes import as_date, code_warnings
from party_sdk.tables.columns import (
    Bad,
    Column,
    count_codes,
    id_texts,
    numbers,
    texts,
    without_codes,
)
from party_sdk.tables.mapping import TableMapping
from party_sdk.tables.names import UNNAMED
from party_sdk.tables.problems import find_cell_problems
from party_sdk.tables.read_options import How
from party_sdk.tables.report import (
    HEADER,
    CheckReport,
    ColumnReport,
    Findings,
    format_names,
    sentences,
)
from party_sdk.tables.row_places import Places, RemainingRows
from party_sdk.tables.scratch import Scratch
from party_sdk.tables.source import Source
from party_sdk.tables.spool import ColumnSpool, Spool, mapped_ids
from party_sdk.tables.table import Table, UnmappedCells

NO_ID: Final = "no id"


def examine(
    source: Source, how: How, file: Path | None, scratch: Scratch
) -> tuple[CheckReport, Table | None]:
    """Return how a source is read, and its table unless there are problems.

    Raises InvalidData if columns that are named do not exist, or the source cannot be
        read.
    Raises InvalidParameters if a guard is to be switched off that does not exist.
    """
    allow = guards.check_switches(how.allow)
    own_ids = how.id_columns
    columns = _columns(source, how, own_ids)
    naming = named.normalise_id_columns(how.match_columns) or own_ids
    source.names.require(naming)
    while True:
        reading = TableReading(source, columns, naming, how, allow, scratch)
        reading.run()
        empty = set() if how.columns or how.schema else reading.nameless_empty
        if not 0 < len(empty) < len(columns):
            break
        # a delimiter at the end of each line makes one
        columns = [column for column in columns if column.name not in empty]
    report, table = reading.result(file)
    if any(problem.of_cell for problem in report.problems):
        cells = find_cell_problems(source, columns, allow)
        report = report.model_copy(update={"cells": cells})
    return report, table


def _columns(source: Source, how: How, naming: Sequence[str]) -> list[Column]:
    """Return the columns to read: the dictionary's, those chosen, or all but the ids."""
    said = how.columns
    if how.match_columns and said is None and how.schema is None:
        matched = {*how.match_columns, *naming}
        said = [name for name in source.names.all if name not in matched]
    if how.schema is not None:
        used = how.schema.used.names
        if unknown := sorted(set(said or ()) - set(used)):
            hint = did_you_mean(unknown[0], used)
            what = (
                "leaves out" if unknown[0] in how.schema.names else "does not describe"
            )
            raise InvalidData(f"The dictionary {what} {unknown[0]!r}.{hint}")
        said = said or used
    wanted = named.choose_columns(source.names, naming, said)
    kinds = dict(zip(source.names.all, source.kinds, strict=True))
    codes = frozenset({*how.file_dialect.codes})
    forms = dict(zip(source.names.all, source.forms, strict=True))
    columns = [
        Column.of(name, kinds[name], how.schema, codes, forms[name]) for name in wanted
    ]
    return (
        columns
        if how.mapping is None
        else _map_columns(columns, how.mapping, () if how.match_columns else naming)
    )


def _map_columns(
    columns: Sequence[Column], mapping: TableMapping, naming: Sequence[str]
) -> list[Column]:
    """Return columns as a mapping leaves them: codes of the table are no cells any more."""
    if changed := [name for name in naming if mapping.changes(name)]:
        raise InvalidData(
            f"The mapping changes the ids in {changed[0]!r}: a column that names the rows "
            "can have another name, and no other levels, unit or codes."
        )
    return [
        replace(
            column,
            codes=frozenset() if mapping.changes(column.name) else column.codes,
            header=mapping.source_of(column.name),
        )
        for column in columns
    ]


class TableReading:
    """One pass over a source: numbers to the spool, findings to the report."""

    def __init__(
        self,
        source: Source,
        columns: Sequence[Column],
        naming: Sequence[str],
        how: How,
        allow: frozenset[str],
        scratch: Scratch,
    ) -> None:
        self._source, self._columns = source, columns
        self._naming, self._allow = tuple(naming), allow
        self._matches, self._codes = bool(how.match_columns), how.file_dialect.codes
        preparation, mapping = how.preparation, how.mapping
        self._prepared = preparation is not None
        self._refusing = [_refuses_gaps(column, preparation) for column in columns]
        self._spool = Spool(len(columns), scratch.numbers)
        self._headers, self._changed = _find_changes(columns, mapping)
        self._original = ColumnSpool(scratch.original)
        self._original_file = scratch.original
        self._ids, self._cells = ColumnSpool(scratch.cells), scratch.cells
        self._watch = guards.NumberGuard(columns)
        self._totals: list[int] = []
        self._named_totals: dict[str, list[int]] = {}
        self._wrong: dict[tuple[int, str], str] = {}  # what is wrong with a cell
        self._no_value = [Counter[str]() for _ in columns]
        self._more = 0
        self._gaps: list[tuple[int, str, str]] = []

    def run(self) -> None:
        """Read all rows."""
        for batch in self._source.batches(self._columns, self._naming):
            cells, ids = batch.cells, batch.names
            begin = self._spool.n_rows
            if self._naming:
                if self._matches:
                    ids = [without_codes(part, self._codes) for part in ids]
                named_rows, empty = id_texts(ids)
                self._ids.write([named_rows])
                for row in [] if self._matches else np.flatnonzero(empty).tolist():
                    self._note(begin + row, ", ".join(self._naming), NO_ID)
                self._note_names(begin, ids, named_rows)
            self._see_texts(begin, cells)
            X = self._numbers(begin, cells)
            spread = guards.Spread.of(X)
            for row, place, what in guards.misfits(
                self._columns, X, spread, self._allow
            ):
                self._note(begin + row, self._columns[place].name, what)
            if spread.missing.any():
                self._note_gaps(begin, X)
            self._watch.see(X, spread)
            self._spool.write(X)
            if batch.original:
                self._original.write([pa.array(values) for values in batch.original])
        self._ids.close()
        self._original.close()

    def _numbers(self, begin: int, cells: Sequence[pa.Array]) -> FloatArray:
        """Return the cells of a batch as (n_rows, n_columns), column by column."""
        X = np.empty((len(cells[0]), len(cells)), order="F")
        for place, (column, piece) in enumerate(zip(self._columns, cells, strict=True)):
            X[:, place], bad = numbers(column, piece)
            self._note_all(begin, column.name, bad)
            self._no_value[place] += count_codes(column, piece)
        return X

    def _note_all(self, begin: int, name: str, bad: Sequence[Bad]) -> None:
        for fault in bad:
            self._note(begin + fault.row, name, fault.what)

    def _note(self, row: int, name: str, what: str) -> None:
        if len(self._wrong) < 100:
            self._wrong.setdefault((row, name), what)
        else:
            self._more += 1

    def _note_names(self, begin: int, ids: Sequence[pa.Array], named: pa.Array) -> None:
        """Keep the rows whose ids are no ids: of totals, or the names of the columns."""
        first = texts(ids[0])
        rows = guards.totals(named if len(ids) == 1 else first)
        self._totals += (begin + rows).tolist()
        headed = compute.equal(compute.utf8_trim_whitespace(first), self._naming[0])
        for row in compute.indices_nonzero(headed).to_pylist():
            self._note(begin + row, self._naming[0], HEADER)

    def _see_texts(self, begin: int, cells: Sequence[pa.Array]) -> None:
        """Keep the words of undescribed columns that name totals."""
        for column, piece in zip(self._columns, cells, strict=True):
            if column.type == "words":
                rows = (begin + guards.totals(texts(piece))).tolist()
                self._named_totals.setdefault(column.name, []).extend(rows)

    def _note_gaps(self, begin: int, X: Any) -> None:
        if len(self._gaps) >= 10:
            return
        refusing = np.flatnonzero(self._refusing)
        for row, place in np.argwhere(np.isnan(X[:, refusing]))[:10]:
            name = self._columns[refusing[place]].name
            self._gaps.append((begin + int(row), name, "empty"))

    @property
    def nameless_empty(self) -> frozenset[str]:
        """Return the columns that have neither a name nor a value."""
        empty = self._watch.missing == self._spool.n_rows
        pairs = zip(self._columns, empty, strict=True)
        names = (column.name for column, is_empty in pairs if is_empty)
        return frozenset(name for name in names if UNNAMED.fullmatch(name))

    def result(self, file: Path | None) -> tuple[CheckReport, Table | None]:
        """Return what was found, and the table if nothing hinders."""
        findings, unfit = Findings(), Findings()
        self._source.tell(findings)
        read = self._source.read_places()
        places = read or self._source.places
        if read is not None or not findings:  # else lines of others are not known
            _add(findings, [(*at, what) for at, what in self._wrong.items()], places)
            findings.more += self._more
            self._add_guards(findings, places)
            self._add_unfit(unfit, places)
        ids = mapped_ids(self._cells) if self._naming else None
        report = self._report(file, findings, unfit, places)
        if findings:
            return report, None
        table = Table(
            report=report,
            naming=self._naming,
            file=file,
            described=tuple(self._columns),
            ids=ids,
            places=self._source.places,
            unfit=unfit,
            spool=self._spool,
            unmapped=self._unmapped_cells(),
        )
        return report, table

    def _unmapped_cells(self) -> UnmappedCells | None:
        """Return the cells that a mapping changed; None if it changed nothing."""
        if not self._headers:
            return None
        n_rows = self._spool.n_rows
        return UnmappedCells.of(
            self._headers, self._changed, self._original_file, n_rows
        )

    def _add_guards(self, findings: Findings, places: Places) -> None:
        if not self._spool.n_rows and not findings:
            findings.add("there are no rows below the names of columns")
        if guards.RUNNING not in self._allow:
            self._add_row_numbers(findings)
        if guards.TOTALS not in self._allow:
            for line in places.of(self._rows_of_totals()):
                findings.add(
                    f"looks like a row of totals: delete it, or --allow {guards.TOTALS}",
                    line=line,
                )

    def _rows_of_totals(self) -> list[int]:
        """Return the rows that their id calls totals, and the last if it is one.

        It is by its numbers, or by a word that no other row of its column holds.
        """
        last = self._spool.n_rows - 1
        lonely = any(rows == [last] for rows in self._named_totals.values())
        at_end = [last] if lonely or self._watch.has_totals else []
        return sorted({*self._totals, *at_end})

    def _add_row_numbers(self, findings: Findings) -> None:
        remedy = (
            "name it as --id-column, leave it out with --columns, or --allow "
            f"{guards.RUNNING}"
        )
        for name in self._watch.running_columns:
            what = (
                "has no name" if UNNAMED.fullmatch(name) else "looks like a row number"
            )
            findings.add(f"{what}: {remedy}", column=name)

    def _add_unfit(self, unfit: Findings, places: Places) -> None:
        """Add what no preparation is agreed for."""
        for what in ("words", "dates", *([] if self._prepared else ["categories"])):
            names = [c.name for c in self._columns if _needs(c) == what]
            if names:
                unfit.add(_explain_undescribed(what, names))
        gaps = sum(
            int(count)
            for refuses, count in zip(self._refusing, self._watch.missing, strict=True)
            if refuses
        )
        _add(unfit, self._gaps, places)
        unfit.more += max(0, gaps - len(self._gaps))

    def _report(
        self, file: Path | None, findings: Findings, unfit: Findings, places: Places
    ) -> CheckReport:
        columns = tuple(map(self._column, range(len(self._columns))))
        warnings = [*self._source.names.warnings, *self._source.warnings]
        if self._spool.n_rows:
            warnings += self._watch.warnings()
            warnings += code_warnings(self._columns, self._spool)
        if unfit:
            told = sentences(unfit, self._source.places.word)
            agreed = "no other" if self._prepared else "no"
            warnings.append(
                f"Refused as long as {agreed} preparation is agreed: {told}"
            )
        return CheckReport(
            file=file.name if file else "",
            counts=self._source.places.word,
            rows=self._spool.n_rows,
            columns=columns,
            dialect=self._source.format_description,
            problems=tuple(findings.shown),
            more_problems=findings.more,
            warnings=tuple(warnings),
            not_read=len(places.omitted) if isinstance(places, RemainingRows) else 0,
        )

    def _column(self, place: int) -> ColumnReport:
        """Return how a column is read, with its range unless it may name the rows."""
        column, watch = self._columns[place], self._watch
        least, largest = watch.low[place], watch.high[place]
        shown: dict[str, Any] = {}
        if (
            np.isfinite([least, largest]).all()
            and column.name not in watch.id_like_columns
        ):
            if column.is_date:
                shown = {"least": as_date(least), "largest": as_date(largest)}
            elif column.is_numeric:
                shown = {"least": float(least), "largest": float(largest)}
        return ColumnReport(
            name=column.name,
            type=column.type,
            missing=int(watch.missing[place]),
            codes=dict(sorted((+self._no_value[place]).items())),
            **shown,
        )


def _find_changes(
    columns: Sequence[Column], mapping: TableMapping | None
) -> tuple[Sequence[str], Sequence[int]]:
    """Return what the table calls columns, and the places of those whose cells change.

    Nothing where a mapping changes neither names nor cells.
    """
    if mapping is None:
        return (), ()
    headers = [mapping.source_of(column.name) for column in columns]
    changed = [i for i, c in enumerate(columns) if mapping.changes(c.name)]
    renamed = any(c.name != h for c, h in zip(columns, headers, strict=True))
    return (headers, changed) if changed or renamed else ((), ())


def _add(
    findings: Findings, found: Sequence[tuple[int, str, str]], places: Places
) -> None:
    rows = sorted({row for row, _, _ in found})
    lines = dict(zip(rows, places.of(rows), strict=True))
    for row, name, what in sorted(found):
        is_of_cell = what not in {HEADER, NO_ID}
        findings.add(what, lines[row], name, of_cell=is_of_cell)


def _refuses_gaps(column: Column, preparation: Preparation | None) -> bool:
    if column.field is not None and column.field.role == "describe":
        return column.field.constraints.required
    if preparation is None or column.field is None:
        return column.is_described
    return preparation.of(column.field).missing == "refuse"


def _needs(column: Column) -> str:
    """Return what it is of a column that no preparation is agreed for."""
    if column.field is not None:
        is_clustered = column.field.role == "cluster"
        return "categories" if column.field.is_category and is_clustered else ""
    return {"words": "words", "date": "dates"}.get(column.kind, "")


def _explain_undescribed(what: str, names: Sequence[str]) -> str:
    one = len(names) == 1
    hold, them = ("holds", "it") if one else ("hold", "them")
    if what == "categories":
        return (
            f"{format_names(names)} {hold} categories, and no preparation of {them} is agreed: "
            f"leave {them} out with --columns"
        )
    return (
        f"{format_names(names)} {hold} {what}: describe {them} in a dictionary (coterie schema "
        f"infer), or leave {them} out with --columns"
    )
