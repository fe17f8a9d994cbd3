"""Read a table completely: numbers go to a temporary file, problems into a report."""

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
from clustering_protocols.common.values import suggest_similar_name
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Preparation
from party_sdk.tables import guards
from party_sdk.tables.cells import (
    SHORT_YEAR,
    fix_minus,
    parse_limit,
    read_date,
    read_number,
)
from party_sdk.tables.columns import (
    Column,
    count_codes,
    join_ids,
    to_numbers,
    to_texts,
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
    join_findings,
)
from party_sdk.tables.source import Batch, RowLocations, Source
from party_sdk.tables.table import (
    ArrowIds,
    ColumnSpool,
    Spool,
    Table,
    UnmappedCells,
    map_arrow_batches,
)

_MOST_VALUES: Final = 1_000
"""Up to this many distinct wrong values of a column are counted one by one."""
_MOST_LEVELS: Final = 20
_NO_NUMBERS: Final = "not numbers"
_THOUSAND: Final = re.compile(r"[+-]?\d{1,3}[.,]\d{3}")
_ORDERS: Final = ("year-first", "day-first", "month-first")


class _WrongValues:
    """The values of a column that share a problem; ``row`` is the first row with one."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.n_rows = 0
        self.counts: dict[str, int] = {}

    def add(self, text: str) -> None:
        self.n_rows += 1
        if text in self.counts or len(self.counts) < _MOST_VALUES:
            self.counts[text] = self.counts.get(text, 0) + 1

    def to_problem(
        self, name: str, fault: str, line: int, *, is_wrong_row: bool
    ) -> CellProblem:
        """Return the problem with its values, the most frequent first.

        is_wrong_row: whether there is a single wrong value, and its row is wrong in
            other columns as well, so that the row itself may not belong to the data.
        """
        values = sorted(self.counts.items(), key=lambda item: -item[1])
        texts, wrong_line = [text for text, _ in values], line if is_wrong_row else None
        return CellProblem(
            column=name,
            what=fault,
            values=tuple(values),
            n_rows=self.n_rows,
            line=line,
            hint=_hint_for(fault, texts, wrong_line),
        )


def _describe_fault(column: Column) -> str:
    field = column.field
    if field is not None and field.is_category:
        levels = ", ".join(field.levels[:_MOST_LEVELS])
        more = f" and {n} more" if (n := len(field.levels) - _MOST_LEVELS) > 0 else ""
        return f"not levels; allowed: {levels}{more}"
    if column.type == "boolean":
        return "neither yes nor no"
    return "not dates" if column.is_date else _NO_NUMBERS


def _add_bounds(column: Column, fault: str) -> str:
    field = column.field
    if field is None or "dictionary's" not in fault:
        return fault
    write = as_date if field.type == "date" else "{:g}".format
    low, high = (write(end) if np.isfinite(end) else "" for end in field.bounds)
    if low and high:
        return f"{fault}; allowed: {low} to {high}"
    return f"{fault}; allowed: {f'at least {low}' if low else f'at most {high}'}"


def _hint_for(fault: str, texts: Sequence[str], line: int | None) -> str:
    """Return a remedy that the form of the wrong values suggests; empty if none does.

    line: number of the line if it is wrong in several columns; None otherwise.
    """
    is_number = fault == _NO_NUMBERS
    if is_number and any(map(fix_minus, texts)):
        return (
            'negative, with another minus sign? minus = "any" in a mapping reads them'
        )
    if is_number and any(parse_limit(text) for text in texts):
        return (
            'a limit of detection: limits = "half", "value" or "missing" in a mapping'
        )
    if is_number and (hint := _hint_for_numbers(texts)):
        return hint
    if is_number and not any(text.strip()[:1].isdigit() for text in texts):
        if line is not None:
            return f"a row of units? [leave_out] lines = [{line}] in a mapping"
        words = " ".join(f"--csv {shlex.quote(f'missing={t}')}" for t in texts[:3])
        return f"if they stand for no value: {words}"
    if fault == "not dates":
        return _hint_for_dates(texts)
    if fault.startswith("not levels"):
        return "draft a mapping (coterie table --propose)"
    return ""


def _hint_for_numbers(texts: Sequence[str]) -> str:
    """Return the decimal sign or thousands separator with which the texts are numbers."""
    candidates = [t for t in texts if any(read_number(t, None, sign) for sign in ".,")]
    signs = {sign for t in candidates for sign in ".," if read_number(t, sign, None)}
    if not candidates:
        return ""
    sign = signs.pop() if len(signs) == 1 else ""
    if not sign or not all(read_number(text, sign, None) for text in candidates):
        return 'separators of thousands: thousands = "." or "," in a mapping'
    is_either = all(_THOUSAND.fullmatch(text.strip()) for text in candidates)
    as_thousands = f'thousands = "{sign}" or ' if is_either else ""
    return f'{as_thousands}decimal = "{sign}" in a mapping'


def _hint_for_dates(texts: Sequence[str]) -> str:
    if any(read_date(text, (order,)) for text in texts for order in _ORDERS):
        return 'dates = ["day-first", "year-first"] in a mapping says their order'
    if any(SHORT_YEAR.fullmatch(text.strip()) for text in texts):
        return "write years with four digits, such as 2026-01-31"
    return "write them as 2026-01-31"


NO_ID: Final = "no id"


def examine_source(
    source: Source, options: ReadOptions, file: Path | None, scratch: Scratch
) -> tuple[CheckReport, Table | None]:
    """Read a source and return its report, with the table if there are no problems.

    Raises InvalidData if a named column does not exist, or the source cannot be read.
    Raises InvalidParameters if ``options.allow`` names an unknown guard.
    """
    allow = guards.check_switches(options.allow)
    own_ids = options.id_columns
    columns = _build_columns(source, options, own_ids)
    naming = normalise_id_columns(options.match_columns) or own_ids
    source.names.require(naming)
    while True:
        reading = TableReading(source, columns, naming, options, allow, scratch)
        reading.read_rows()
        empty = set() if options.columns or options.schema else reading.blank_columns
        if not 0 < len(empty) < len(columns):
            break
        # Lines that end with a delimiter seem to have one more column, which is blank.
        columns = [column for column in columns if column.name not in empty]
    return reading.build_result(file)


def _build_columns(
    source: Source, options: ReadOptions, own_ids: Sequence[str]
) -> list[Column]:
    names = options.columns
    if options.match_columns and names is None and options.schema is None:
        id_names = {*options.match_columns, *own_ids}
        names = [name for name in source.names.all if name not in id_names]
    if options.schema is not None:
        used = options.schema.used.names
        if unknown := sorted(set(names or ()) - set(used)):
            hint = suggest_similar_name(unknown[0], used)
            is_described = unknown[0] in options.schema.names
            verb = "leaves out" if is_described else "does not describe"
            raise InvalidData(f"The dictionary {verb} {unknown[0]!r}.{hint}")
        names = names or used
    selection = choose_columns(source.names, own_ids, names)
    kinds = dict(zip(source.names.all, source.kinds, strict=True))
    codes = frozenset({*options.file_dialect.codes})
    forms = dict(zip(source.names.all, source.forms, strict=True))
    columns = [
        Column.from_schema(name, kinds[name], options.schema, codes, forms[name])
        for name in selection
    ]
    if (mapping := options.mapping) is None:
        return columns
    changed_ids = [name for name in own_ids if mapping.changes(name)]
    if changed_ids and not options.match_columns:
        raise InvalidData(
            f"The mapping changes the ids in {changed_ids[0]!r}: it may rename a column that "
            "names the rows, but not change its levels, unit or codes."
        )
    return [
        replace(  # codes of missing values are gone from cells that the mapping changed
            column,
            codes=frozenset() if mapping.changes(column.name) else column.codes,
            header=mapping.source_of(column.name),
        )
        for column in columns
    ]


class TableReading:
    """A pass over a source that writes its rows to a spool and collects their problems."""

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
        self._uses_match_keys = bool(options.match_columns)
        self._codes = options.file_dialect.codes
        preparation, mapping = options.preparation, options.mapping
        self._has_preparation = preparation is not None
        self._gaps_refused = [_refuses_gaps(column, preparation) for column in columns]
        self._spool = Spool(len(columns), scratch.numbers)
        self._headers, self._changed = _find_changes(columns, mapping)
        self._original = Spool(len(self._changed), scratch.original)
        self._ids, self._cells = ColumnSpool(scratch.cells), scratch.cells
        self._guard = guards.NumberGuard(columns)
        self._totals: list[int] = []
        self._named_totals: dict[str, list[int]] = {}
        self._problems: dict[tuple[int, str], str] = {}  # by row and column name
        self._n_more_problems = 0
        self._values = dict[tuple[int, str], _WrongValues]()  # by column and problem
        self._code_counts = [Counter[str]() for _ in columns]
        self._gaps: list[tuple[int, str, str]] = []
        self._n_unreadable = np.zeros(len(columns), np.int64)

    def read_rows(self) -> None:
        """Read all rows of the source."""
        for batch in self._source.batches(self._columns, self._naming):
            ids = batch.names
            begin = self._spool.n_rows
            if self._naming:
                if self._uses_match_keys:
                    ids = [without_codes(part, self._codes) for part in ids]
                row_ids, empty = join_ids(ids)
                self._ids.write([row_ids])
                no_id = [] if self._uses_match_keys else np.flatnonzero(empty).tolist()
                for row in no_id:
                    self._add_problem(begin + row, ", ".join(self._naming), NO_ID)
                self._find_totals_and_headers(begin, ids, row_ids)
            for column, piece in zip(self._columns, batch.cells, strict=True):
                if column.type == "words":  # words such as "total" mark a row of totals
                    rows = (begin + guards.find_totals(to_texts(piece))).tolist()
                    self._named_totals.setdefault(column.name, []).extend(rows)
            X, bad_cells = self._convert_cells(begin, batch)
            spread = guards.Spread.measure(X)
            for row, index, fault in guards.find_forbidden_numbers(
                self._columns, X, spread, self._allow
            ):
                if (row, index) not in bad_cells:
                    kind = _add_bounds(self._columns[index], fault)
                    self._add_wrong_cell(begin, batch, row, index, fault, kind)
            if spread.missing.any() and len(self._gaps) < 10:
                refused = np.flatnonzero(self._gaps_refused)
                is_gap = np.isnan(X)
                for row, index in bad_cells:
                    is_gap[row, index] = False
                for row, index in np.argwhere(is_gap[:, refused])[:10]:
                    name = self._columns[refused[index]].name
                    self._gaps.append((begin + int(row), name, "empty"))
            self._guard.add_batch(X, spread)
            self._spool.write(X)
            if batch.original:
                self._original.write(np.column_stack(batch.original))
        self._ids.close()

    def _convert_cells(
        self, begin: int, batch: Batch
    ) -> tuple[FloatArray, set[tuple[int, int]]]:
        """Return float64 (n_rows, n_columns), and (row, column) of unreadable cells."""
        X = np.empty((len(batch.cells[0]), len(batch.cells)), order="F")
        bad_cells = set()
        pairs = zip(self._columns, batch.cells, strict=True)
        for index, (column, piece) in enumerate(pairs):
            X[:, index], faults = to_numbers(column, piece)
            for row, problem in faults:
                bad_cells.add((row, index))
                self._n_unreadable[index] += np.isnan(X[row, index])
                if problem == HEADER:
                    self._add_problem(begin + row, column.name, problem)
                else:
                    kind = _describe_fault(column)
                    self._add_wrong_cell(begin, batch, row, index, problem, kind)
            self._code_counts[index] += count_codes(column, piece)
        return X, bad_cells

    def _add_wrong_cell(
        self, begin: int, batch: Batch, row: int, index: int, fault: str, kind: str
    ) -> None:
        """Record a wrong cell and its value, grouped by ``kind`` of problem."""
        name = self._columns[index].name
        self._add_problem(begin + row, name, fault)
        cells = (batch.unmapped or batch.cells)[index]
        text = to_texts(cells.slice(row, 1))[0].as_py() or ""
        values = self._values.setdefault((index, kind), _WrongValues(begin + row))
        values.row = min(values.row, begin + row)
        values.add(text)

    def _add_problem(self, row: int, name: str, fault: str) -> None:
        if len(self._problems) < 100:
            self._problems.setdefault((row, name), fault)
        else:
            self._n_more_problems += 1

    def _find_totals_and_headers(
        self, begin: int, ids: Sequence[pa.Array], row_ids: pa.Array
    ) -> None:
        first = to_texts(ids[0])
        rows = guards.find_totals(row_ids if len(ids) == 1 else first)
        self._totals += (begin + rows).tolist()
        is_header = compute.equal(compute.utf8_trim_whitespace(first), self._naming[0])
        for row in compute.indices_nonzero(is_header).to_pylist():
            self._add_problem(begin + row, self._naming[0], HEADER)

    @property
    def blank_columns(self) -> frozenset[str]:
        """Return the columns that have neither a name nor any value."""
        pairs = zip(self._columns, self._guard.missing, strict=True)
        names = (column.name for column, n in pairs if n == self._spool.n_rows)
        return frozenset(name for name in names if UNNAMED.fullmatch(name))

    def build_result(self, file: Path | None) -> tuple[CheckReport, Table | None]:
        """Return the report, and the table if there are no problems."""
        findings, obstacles = Findings(), Findings()
        self._source.add_findings(findings)
        certain, cells = self._source.last_row_locations(), tuple[CellProblem, ...]()
        locations = certain or self._source.row_locations
        if certain is not None or not findings:
            problems = [(*cell, fault) for cell, fault in self._problems.items()]
            _add_findings_in_order(findings, problems, locations)
            findings.more += self._n_more_problems
            if any(finding.of_cell for finding in findings.shown):
                cells = tuple(self._cell_problems(locations))
            self._add_guard_findings(findings, locations)
            self._add_obstacles(obstacles, locations)
        report = self._build_report(file, findings, obstacles, locations, cells)
        if findings:
            return report, None
        ids = ArrowIds([batch.column(0) for batch in map_arrow_batches(self._cells)])
        return report, Table(
            report=report,
            naming=self._naming,
            file=file,
            column_specs=tuple(self._columns),
            ids=ids if self._naming else None,
            locations=self._source.row_locations,
            obstacles=obstacles,
            spool=self._spool,
            unmapped=UnmappedCells(self._headers, self._changed, self._original)
            if self._headers
            else None,
        )

    def _add_guard_findings(self, findings: Findings, locations: RowLocations) -> None:
        n_rows, guard = self._spool.n_rows, self._guard
        if not n_rows and not findings:
            findings.add("there are no rows below the names of columns")
        names = [] if guards.RUNNING_NUMBER in self._allow else guard.running_columns
        for name in names:
            fault = "looks like a row number"
            if UNNAMED.fullmatch(name):
                fault = "has no name"
            findings.add(
                f"{fault}: name it as --id-column, leave it out with --columns, or --allow "
                f"{guards.RUNNING_NUMBER}",
                column=name,
            )
        if guards.TOTALS_ROW in self._allow:
            return
        # In other columns than the id, only a single such word in the last row counts.
        has_word = any(rows == [n_rows - 1] for rows in self._named_totals.values())
        last_rows = [n_rows - 1] if has_word or guard.has_totals else []
        for line in locations.numbers_of_rows(sorted({*self._totals, *last_rows})):
            findings.add(
                f"looks like a row of totals: delete it, or --allow {guards.TOTALS_ROW}",
                line=line,
            )

    def _add_obstacles(self, obstacles: Findings, locations: RowLocations) -> None:
        categories = [] if self._has_preparation else ["categories"]
        for kind in ("words", "dates", *categories):
            names = [c.name for c in self._columns if _kind_to_prepare(c) == kind]
            is_single = len(names) == 1
            hold, pronoun = ("holds", "it") if is_single else ("hold", "them")
            statement = f"{format_names(names)} {hold} {kind}"
            leave = f"leave {pronoun} out with --columns"
            if names and kind == "categories":
                obstacles.add(
                    f"{statement}, and no preparation of {pronoun} is agreed: {leave}"
                )
            elif names:
                obstacles.add(
                    f"{statement}: describe {pronoun} in a dictionary (coterie schema infer), or "
                    f"{leave}"
                )
        n_missing = self._guard.missing - self._n_unreadable
        n_gaps = int(n_missing[np.flatnonzero(self._gaps_refused)].sum())
        _add_findings_in_order(obstacles, self._gaps, locations)
        obstacles.more += max(0, n_gaps - len(self._gaps))

    def _cell_problems(self, locations: RowLocations) -> Iterator[CellProblem]:
        wrong_values = sorted(self._values.items(), key=lambda item: item[0][0])
        first_rows = [values.row for _, values in wrong_values]
        lines = locations.numbers_of_rows(first_rows)
        single = Counter(values.row for _, values in wrong_values if values.n_rows == 1)
        for ((index, kind), values), line in zip(wrong_values, lines, strict=True):
            is_wrong_row = values.n_rows == 1 and single[values.row] > 1
            name = self._columns[index].name
            yield values.to_problem(name, kind, line, is_wrong_row=is_wrong_row)

    def _build_report(
        self,
        file: Path | None,
        findings: Findings,
        obstacles: Findings,
        locations: RowLocations,
        cells: tuple[CellProblem, ...],
    ) -> CheckReport:
        columns = tuple(map(self._column_report, range(len(self._columns))))
        warnings = [*self._source.names.warnings, *self._source.warnings]
        if self._spool.n_rows:
            warnings += self._guard.warnings()
            warnings += code_warnings(self._columns, self._spool)
        if obstacles:
            statement = join_findings(obstacles, self._source.row_locations.word)
            quantifier = "no other" if self._has_preparation else "no"
            warnings.append(
                f"Refused as long as {quantifier} preparation is agreed: {statement}"
            )
        return CheckReport(
            file=file.name if file else "",
            counts=self._source.row_locations.word,
            rows=self._spool.n_rows,
            columns=columns,
            dialect=self._source.format_description,
            problems=tuple(findings.shown),
            more_problems=findings.more,
            cells=cells,
            warnings=tuple(warnings),
            not_read=locations.n_omitted,
        )

    def _column_report(self, index: int) -> ColumnReport:
        """Build the report on a column, without its range if it might hold ids."""
        column, guard = self._columns[index], self._guard
        minimum, maximum = guard.low[index], guard.high[index]
        value_range: dict[str, Any] = {}
        if (
            np.isfinite([minimum, maximum]).all()
            and column.name not in guard.id_like_columns
        ):
            if column.is_date:
                value_range = {"least": as_date(minimum), "largest": as_date(maximum)}
            elif column.is_numeric:
                value_range = {"least": float(minimum), "largest": float(maximum)}
        return ColumnReport(
            name=column.name,
            type=column.type,
            missing=int(guard.missing[index] - self._n_unreadable[index]),
            unreadable=int(self._n_unreadable[index]),
            codes=dict(sorted((+self._code_counts[index]).items())),
            **value_range,
        )


def _find_changes(
    columns: Sequence[Column], mapping: TableMapping | None
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the columns' names in the table, and indices of those with changed cells.

    Both are empty if the mapping changes neither names nor cells.
    """
    if mapping is None:
        return (), ()
    headers = tuple(mapping.source_of(column.name) for column in columns)
    changed = tuple(i for i, c in enumerate(columns) if mapping.changes(c.name))
    renamed = any(c.name != h for c, h in zip(columns, headers, strict=True))
    return (headers, changed) if changed or renamed else ((), ())


def _add_findings_in_order(
    findings: Findings,
    problems: Sequence[tuple[int, str, str]],
    locations: RowLocations,
) -> None:
    rows = sorted({row for row, _, _ in problems})
    lines = dict(zip(rows, locations.numbers_of_rows(rows), strict=True))
    for row, name, fault in sorted(problems):
        is_of_cell = fault not in {HEADER, NO_ID}
        findings.add(fault, lines[row], name, of_cell=is_of_cell)


def _refuses_gaps(column: Column, preparation: Preparation | None) -> bool:
    if column.field is not None and column.field.role == "describe":
        return column.field.constraints.required
    if preparation is None or column.field is None:
        return column.is_described
    return preparation.of(column.field).missing == "refuse"


def _kind_to_prepare(column: Column) -> str:
    """Return the kind of values that need a preparation; empty if none of them does."""
    if column.field is not None:
        is_clustered = column.field.role == "cluster"
        return "categories" if column.field.is_category and is_clustered else ""
    return {"words": "words", "date": "dates"}.get(column.kind, "")
