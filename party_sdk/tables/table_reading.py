"""A table is read to its end: numbers to the spool, what is wrong to the report."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.values import did_you_mean
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Preparation
from party_sdk.tables import guards
from party_sdk.tables.cells import (
    SHORT_YEAR,
    read_date,
    read_minus,
    read_number,
    split_limit,
)
from party_sdk.tables.columns import (
    Column,
    count_codes,
    id_texts,
    numbers,
    texts,
    without_codes,
)
from party_sdk.tables.files import Scratch
from party_sdk.tables.guards import as_date, code_warnings
from party_sdk.tables.mapping import TableMapping
from party_sdk.tables.read_options import (
    UNNAMED,
    ReadOptions,
    choose_columns,
    normalise_id_columns,
)
from party_sdk.tables.report import (
    HEADER,
    CellProblem,
    CheckReport,
    ColumnReport,
    Findings,
    format_names,
    sentences,
)
from party_sdk.tables.source import Batch, RowLocations, Source
from party_sdk.tables.table import ColumnSpool, Spool, Table, UnmappedCells, mapped_ids

_MOST_VALUES: Final = 1_000
"""Different values of one column that are counted one by one; the others together."""
_MOST_LEVELS: Final = 20
_NO_NUMBERS: Final = "not numbers"
_THOUSAND: Final = re.compile(r"[+-]?\d{1,3}[.,]\d{3}")
_ORDERS: Final = ("year-first", "day-first", "month-first")


class _WrongValues:
    """Values of one column with one fault: rows of each, and the first row of all."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.n_rows = 0
        self.counts: dict[str, int] = {}

    def add(self, text: str) -> None:
        """Add a row that holds a value."""
        self.n_rows += 1
        if text in self.counts or len(self.counts) < _MOST_VALUES:
            self.counts[text] = self.counts.get(text, 0) + 1

    def to_problem(
        self, name: str, what: str, line: int, *, is_of_row: bool
    ) -> CellProblem:
        """Return them for people, the most frequent first.

        is_of_row: whether this one value stands in a row with other wrong ones.
        """
        values = sorted(self.counts.items(), key=lambda each: -each[1])
        texts, row = [text for text, _ in values], line if is_of_row else None
        return CellProblem(
            column=name,
            what=what,
            values=tuple(values),
            n_rows=self.n_rows,
            line=line,
            hint=_hint_for(what, texts, row),
        )


def _not_read(column: Column) -> str:
    field = column.field
    if field is not None and field.is_category:
        shown = ", ".join(field.levels[:_MOST_LEVELS])
        more = f" and {n} more" if (n := len(field.levels) - _MOST_LEVELS) > 0 else ""
        return f"not levels; allowed: {shown}{more}"
    if column.type == "boolean":
        return "neither yes nor no"
    return "not dates" if column.is_date else _NO_NUMBERS


def _with_bounds(column: Column, what: str) -> str:
    """Return a fault with what the dictionary allows instead."""
    field = column.field
    if field is None or "dictionary's" not in what:
        return what
    write = as_date if field.type == "date" else "{:g}".format
    low, high = (write(end) if np.isfinite(end) else "" for end in field.bounds)
    if low and high:
        return f"{what}; allowed: {low} to {high}"
    return f"{what}; allowed: {f'at least {low}' if low else f'at most {high}'}"


def _hint_for(what: str, texts: Sequence[str], row: int | None) -> str:
    """Return what mends values, where their kind shows it.

    row: the line of other wrong values beside this one, if it stands among such.
    """
    is_number = what == _NO_NUMBERS
    if is_number and any(map(read_minus, texts)):
        return 'negative numbers by their minus? minus = "any" in a mapping reads them'
    if is_number and any(split_limit(text) for text in texts):
        return (
            'a limit of detection: limits = "half", "value" or "missing" in a mapping'
        )
    if is_number and (hint := _hint_for_numbers(texts)):
        return hint
    if is_number and not any(text.strip()[:1].isdigit() for text in texts):
        if row is not None:
            return f"a row of units? [leave_out] lines = [{row}] in a mapping"
        words = " ".join(f"--csv {shlex.quote(f'missing={t}')}" for t in texts[:3])
        return f"if they stand for no value: {words}"
    if what == "not dates":
        return _hint_for_dates(texts)
    if what.startswith("not levels"):
        return "coterie table --propose drafts a mapping"
    return ""


def _hint_for_numbers(texts: Sequence[str]) -> str:
    """Return what mends numbers: another decimal sign, or one between thousands."""
    apart = [t for t in texts if any(read_number(t, None, sign) for sign in ".,")]
    signs = {sign for t in apart for sign in ".," if read_number(t, sign, None)}
    if not apart:
        return ""
    sign = signs.pop() if len(signs) == 1 else ""
    if not sign or not all(read_number(text, sign, None) for text in apart):
        return 'thousands that stand apart: thousands = "." or "," in a mapping'
    is_either = all(_THOUSAND.fullmatch(text.strip()) for text in apart)
    either = f'thousands = "{sign}" or ' if is_either else ""
    return f'{either}decimal = "{sign}" in a mapping'


def _hint_for_dates(texts: Sequence[str]) -> str:
    """Return what mends dates: an order, or another form where no order reads them."""
    if any(read_date(text, (order,)) for text in texts for order in _ORDERS):
        return 'dates = ["day-first", "year-first"] in a mapping says their order'
    if any(SHORT_YEAR.fullmatch(text.strip()) for text in texts):
        return "write years with four digits, such as 2026-01-31"
    return "write them as 2026-01-31"


NO_ID: Final = "no id"


def examine(
    source: Source, options: ReadOptions, file: Path | None, scratch: Scratch
) -> tuple[CheckReport, Table | None]:
    """Return how a source is read, and its table unless there are problems.

    Raises InvalidData if columns that are named do not exist, or the source cannot be
        read.
    Raises InvalidParameters if a guard is to be switched off that does not exist.
    """
    allow = guards.check_switches(options.allow)
    own_ids = options.id_columns
    columns = _columns(source, options, own_ids)
    naming = normalise_id_columns(options.match_columns) or own_ids
    source.names.require(naming)
    while True:
        reading = TableReading(source, columns, naming, options, allow, scratch)
        reading.run()
        empty = set() if options.columns or options.schema else reading.nameless_empty
        if not 0 < len(empty) < len(columns):
            break
        # a delimiter at the end of each line makes one
        columns = [column for column in columns if column.name not in empty]
    return reading.result(file)


def _columns(
    source: Source, options: ReadOptions, naming: Sequence[str]
) -> list[Column]:
    """Return the columns to read: the dictionary's, those chosen, or all but the ids."""
    said = options.columns
    if options.match_columns and said is None and options.schema is None:
        matched = {*options.match_columns, *naming}
        said = [name for name in source.names.all if name not in matched]
    if options.schema is not None:
        used = options.schema.used.names
        if unknown := sorted(set(said or ()) - set(used)):
            hint = did_you_mean(unknown[0], used)
            what = (
                "leaves out"
                if unknown[0] in options.schema.names
                else "does not describe"
            )
            raise InvalidData(f"The dictionary {what} {unknown[0]!r}.{hint}")
        said = said or used
    wanted = choose_columns(source.names, naming, said)
    kinds = dict(zip(source.names.all, source.kinds, strict=True))
    codes = frozenset({*options.file_dialect.codes})
    forms = dict(zip(source.names.all, source.forms, strict=True))
    columns = [
        Column.of(name, kinds[name], options.schema, codes, forms[name])
        for name in wanted
    ]
    if (mapping := options.mapping) is None:
        return columns
    changed = [name for name in naming if mapping.changes(name)]
    if changed and not options.match_columns:
        raise InvalidData(
            f"The mapping changes the ids in {changed[0]!r}: a column that names the rows "
            "can have another name, and no other levels, unit or codes."
        )
    return [
        replace(  # codes of the table are no cells any more
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
        options: ReadOptions,
        allow: frozenset[str],
        scratch: Scratch,
    ) -> None:
        self._source, self._columns = source, columns
        self._naming, self._allow = tuple(naming), allow
        self._matches, self._codes = (
            bool(options.match_columns),
            options.file_dialect.codes,
        )
        preparation, mapping = options.preparation, options.mapping
        self._prepared = preparation is not None
        self._refusing = [_refuses_gaps(column, preparation) for column in columns]
        self._spool = Spool(len(columns), scratch.numbers)
        self._headers, self._changed = _find_changes(columns, mapping)
        self._original = Spool(len(self._changed), scratch.original)
        self._ids, self._cells = ColumnSpool(scratch.cells), scratch.cells
        self._watch = guards.NumberGuard(columns)
        self._totals: list[int] = []
        self._named_totals: dict[str, list[int]] = {}
        self._wrong: dict[tuple[int, str], str] = {}  # what is wrong with a cell
        self._values = dict[tuple[int, str], _WrongValues]()  # by column and fault
        self._no_value = [Counter[str]() for _ in columns]
        self._more = 0
        self._gaps: list[tuple[int, str, str]] = []

    def run(self) -> None:
        """Read all rows."""
        for batch in self._source.batches(self._columns, self._naming):
            ids = batch.names
            begin = self._spool.n_rows
            if self._naming:
                if self._matches:
                    ids = [without_codes(part, self._codes) for part in ids]
                named_rows, empty = id_texts(ids)
                self._ids.write([named_rows])
                for row in [] if self._matches else np.flatnonzero(empty).tolist():
                    self._note(begin + row, ", ".join(self._naming), NO_ID)
                self._note_names(begin, ids, named_rows)
            for column, piece in zip(self._columns, batch.cells, strict=True):
                if column.type == "words":  # perhaps words that name totals
                    rows = (begin + guards.totals(texts(piece))).tolist()
                    self._named_totals.setdefault(column.name, []).extend(rows)
            X, unread = self._numbers(begin, batch)
            spread = guards.Spread.of(X)
            for row, place, what in guards.misfits(
                self._columns, X, spread, self._allow
            ):
                if (row, place) not in unread:
                    with_bounds = _with_bounds(self._columns[place], what)
                    self._note_cell(begin, batch, row, place, what, with_bounds)
            if spread.missing.any():
                self._note_gaps(begin, X)
            self._watch.see(X, spread)
            self._spool.write(X)
            if batch.original:
                self._original.write(np.column_stack(batch.original))
        self._ids.close()

    def _numbers(
        self, begin: int, batch: Batch
    ) -> tuple[FloatArray, set[tuple[int, int]]]:
        """Return the cells of a batch as (n_rows, n_columns), and those not read."""
        X = np.empty((len(batch.cells[0]), len(batch.cells)), order="F")
        unread = set()
        for place, (column, piece) in enumerate(
            zip(self._columns, batch.cells, strict=True)
        ):
            X[:, place], bad = numbers(column, piece)
            for fault in bad:
                unread.add((fault.row, place))
                if fault.what == HEADER:
                    self._note(begin + fault.row, column.name, fault.what)
                else:
                    kind = _not_read(column)
                    self._note_cell(begin, batch, fault.row, place, fault.what, kind)
            self._no_value[place] += count_codes(column, piece)
        return X, unread

    def _note_cell(
        self, begin: int, batch: Batch, row: int, place: int, what: str, kind: str
    ) -> None:
        """Keep what is wrong with a cell, and the cell for its operator's own screen."""
        name = self._columns[place].name
        self._note(begin + row, name, what)
        cells = (batch.given or batch.cells)[place]
        text = texts(cells.slice(row, 1))[0].as_py() or ""
        values = self._values.setdefault((place, kind), _WrongValues(begin + row))
        values.row = min(values.row, begin + row)
        values.add(text)

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
        read, cells = self._source.read_locations(), tuple[CellProblem, ...]()
        locations = read or self._source.locations
        if read is not None or not findings:  # else lines of others are not known
            _add(findings, [(*at, what) for at, what in self._wrong.items()], locations)
            findings.more += self._more
            if any(found.of_cell for found in findings.shown):
                cells = tuple(self._cell_problems(locations))
            self._add_guards(findings, locations)
            self._add_unfit(unfit, locations)
        ids = mapped_ids(self._cells) if self._naming else None
        report = self._report(file, findings, unfit, locations, cells)
        if findings:
            return report, None
        unmapped = None
        if self._headers:
            unmapped = UnmappedCells(self._headers, self._changed, self._original)
        table = Table(
            report=report,
            naming=self._naming,
            file=file,
            described=tuple(self._columns),
            ids=ids,
            locations=self._source.locations,
            unfit=unfit,
            spool=self._spool,
            unmapped=unmapped,
        )
        return report, table

    def _add_guards(self, findings: Findings, locations: RowLocations) -> None:
        n_rows, watch = self._spool.n_rows, self._watch
        if not n_rows and not findings:
            findings.add("there are no rows below the names of columns")
        running = [] if guards.RUNNING in self._allow else watch.running_columns
        for name in running:
            what = "looks like a row number"
            if UNNAMED.fullmatch(name):
                what = "has no name"
            findings.add(
                f"{what}: name it as --id-column, leave it out with --columns, or --allow "
                f"{guards.RUNNING}",
                column=name,
            )
        if guards.TOTALS in self._allow:
            return
        # the last row is one by its numbers, or by a word that no other row holds
        lonely = any(rows == [n_rows - 1] for rows in self._named_totals.values())
        at_end = [n_rows - 1] if lonely or watch.has_totals else []
        for line in locations.lookup(sorted({*self._totals, *at_end})):
            findings.add(
                f"looks like a row of totals: delete it, or --allow {guards.TOTALS}",
                line=line,
            )

    def _add_unfit(self, unfit: Findings, locations: RowLocations) -> None:
        """Add what no preparation is agreed for."""
        for what in ("words", "dates", *([] if self._prepared else ["categories"])):
            names = [c.name for c in self._columns if _needs(c) == what]
            one = len(names) == 1
            hold, them = ("holds", "it") if one else ("hold", "them")
            told = f"{format_names(names)} {hold} {what}"
            leave = f"leave {them} out with --columns"
            if names and what == "categories":
                unfit.add(f"{told}, and no preparation of {them} is agreed: {leave}")
            elif names:
                unfit.add(
                    f"{told}: describe {them} in a dictionary (coterie schema infer), or "
                    f"{leave}"
                )
        gaps = sum(
            int(count)
            for refuses, count in zip(self._refusing, self._watch.missing, strict=True)
            if refuses
        )
        _add(unfit, self._gaps, locations)
        unfit.more += max(0, gaps - len(self._gaps))

    def _cell_problems(self, locations: RowLocations) -> Iterator[CellProblem]:
        """Yield what is wrong with cells, by column and kind."""
        found = sorted(self._values.items(), key=lambda each: each[0][0])
        first = [values.row for _, values in found]
        lines = locations.lookup(first)
        single = Counter(values.row for _, values in found if values.n_rows == 1)
        for ((place, kind), values), line in zip(found, lines, strict=True):
            is_of_row = values.n_rows == 1 and single[values.row] > 1
            name = self._columns[place].name
            yield values.to_problem(name, kind, line, is_of_row=is_of_row)

    def _report(
        self,
        file: Path | None,
        findings: Findings,
        unfit: Findings,
        locations: RowLocations,
        cells: tuple[CellProblem, ...],
    ) -> CheckReport:
        columns = tuple(map(self._column, range(len(self._columns))))
        warnings = [*self._source.names.warnings, *self._source.warnings]
        if self._spool.n_rows:
            warnings += self._watch.warnings()
            warnings += code_warnings(self._columns, self._spool)
        if unfit:
            told = sentences(unfit, self._source.locations.word)
            agreed = "no other" if self._prepared else "no"
            warnings.append(
                f"Refused as long as {agreed} preparation is agreed: {told}"
            )
        return CheckReport(
            file=file.name if file else "",
            counts=self._source.locations.word,
            rows=self._spool.n_rows,
            columns=columns,
            dialect=self._source.format_description,
            problems=tuple(findings.shown),
            more_problems=findings.more,
            cells=cells,
            warnings=tuple(warnings),
            not_read=locations.n_omitted,
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
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return what the table calls columns, and the places of those whose cells change.

    Nothing where a mapping changes neither names nor cells.
    """
    if mapping is None:
        return (), ()
    headers = tuple(mapping.source_of(column.name) for column in columns)
    changed = tuple(i for i, c in enumerate(columns) if mapping.changes(c.name))
    renamed = any(c.name != h for c, h in zip(columns, headers, strict=True))
    return (headers, changed) if changed or renamed else ((), ())


def _add(
    findings: Findings, found: Sequence[tuple[int, str, str]], locations: RowLocations
) -> None:
    rows = sorted({row for row, _, _ in found})
    lines = dict(zip(rows, locations.lookup(rows), strict=True))
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
