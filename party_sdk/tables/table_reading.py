"""Read a table completely: numbers go to a temporary file, problems into a report."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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
from party_sdk.tables.guards import as_date, find_codes
from party_sdk.tables.mapping import TableMapping
from party_sdk.tables.read_options import (
    UNNAMED,
    ReadOptions,
    choose_columns,
    normalise_id_columns,
)
from party_sdk.tables.report import (
    HEADER,
    MOST_SHOWN,
    CellProblem,
    CheckReport,
    ColumnReport,
    Finding,
    format_names,
)
from party_sdk.tables.source import Batch, RowLocations, Source
from party_sdk.tables.table import ArrowIds, ColumnSpool, Spool, Table, UnmappedCells

_MOST_VALUES: Final = 1_000
"""Up to this many distinct wrong values of a column are counted one by one."""
_MOST_LEVELS: Final = 20
_NO_NUMBERS: Final = "not numbers"
_THOUSAND: Final = re.compile(r"[+-]?\d{1,3}[.,]\d{3}")
_ORDERS: Final = ("year-first", "day-first", "month-first")


@dataclass(slots=True)
class _WrongValues:
    """The values of a column that share a problem; ``row`` is the first row with one."""

    row: int
    n_rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)


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
        cells = json.dumps(texts[:3], ensure_ascii=False)
        return f"if they mean a missing value: missing = {cells} in a mapping"
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
        return 'dates = ["day-first", "year-first"] in a mapping sets their order'
    if any(SHORT_YEAR.fullmatch(text.strip()) for text in texts):
        return "write years with four digits, such as 2026-01-31"
    return "write them as 2026-01-31"


NO_ID: Final = "no id"


def examine_source(
    source: Source, options: ReadOptions, name: str
) -> tuple[CheckReport, Table | None]:
    """Read a source and return its report, with the table if there are no problems.

    name: the name of the table's file, which the report states.

    Raises InvalidData if a named column does not exist, or the source cannot be read.
    Raises InvalidParameters if ``options.allow`` names an unknown guard.
    """
    allow = guards.check_switches(options.allow)
    own_ids = options.id_columns
    columns = _build_columns(source, options, own_ids)
    naming = normalise_id_columns(options.match_key_columns) or own_ids
    source.names.require(naming)
    while True:
        reading = TableReading(source, columns, naming, options, allow)
        reading.read_rows()
        if options.columns or options.schema:
            break
        # Lines that end with a delimiter seem to have one more column, which is blank.
        filled = reading.filled_columns
        if len(filled) in {0, len(columns)}:
            break
        columns = filled
    return reading.build_result(name)


def _build_columns(
    source: Source, options: ReadOptions, own_ids: Sequence[str]
) -> list[Column]:
    names = options.columns
    if options.match_key_columns and names is None and options.schema is None:
        id_names = {*options.match_key_columns, *own_ids}
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
    if changed_ids and not options.match_key_columns:
        raise InvalidData(
            f"The mapping changes the ids in {changed_ids[0]!r}: it may rename a column that "
            "identifies the rows, but not change its levels, unit or codes."
        )
    return [
        replace(  # a mapping removes missing codes from the cells that it changes
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
    ) -> None:
        self._source, self._columns, self._options = source, columns, options
        self._naming, self._allow = tuple(naming), allow
        self._gaps_refused = np.flatnonzero(
            [_refuses_gaps(column, options.preparation) for column in columns]
        )
        mapping = options.mapping or TableMapping()
        self._changed = tuple(
            i for i, column in enumerate(columns) if mapping.changes(column.name)
        )
        self._spool, self._ids = Spool(len(columns)), ColumnSpool()
        self._original = Spool(len(self._changed))
        self._guard = guards.NumberGuard(columns)
        self._totals: list[int] = []
        self._named_totals: dict[str, list[int]] = {}
        # by row and name of the column, which is empty for a repeated header
        self._problems: dict[tuple[int, str], str] = {}
        self._n_more_problems = 0
        self._values = dict[tuple[int, str], _WrongValues]()  # by column and problem
        self._code_counts = [Counter[str]() for _ in columns]
        self._gaps: list[tuple[int, str, str]] = []
        self._n_unreadable = np.zeros(len(columns), np.int64)

    def read_rows(self) -> None:
        """Read all rows of the source."""
        for batch in self._source.batches(self._columns, self._naming):
            begin = self._spool.n_rows
            if self._naming:
                self._read_ids(begin, batch.names)
            for column, piece in zip(self._columns, batch.cells, strict=True):
                if column.type == "words":  # words such as "total" mark a row of totals
                    rows = (begin + guards.find_totals(to_texts(piece))).tolist()
                    self._named_totals.setdefault(column.name, []).extend(rows)
            X, faults = self._convert_cells(batch)
            bad_cells = {(row, index) for row, index, _, _ in faults}
            spread = guards.Spread.measure(X)
            faults += [
                (row, index, fault, _add_bounds(self._columns[index], fault))
                for row, index, fault in guards.find_forbidden_numbers(
                    self._columns, X, spread, self._allow
                )
                if (row, index) not in bad_cells
            ]
            for row, index, fault, kind in faults:
                self._add_problem(begin + row, self._columns[index].name, fault)
                if fault != HEADER:
                    cells = (batch.unmapped or batch.cells)[index]
                    text = to_texts(cells.slice(row, 1))[0].as_py() or ""
                    self._add_value(begin + row, index, kind, text)
            if spread.missing.any() and len(self._gaps) < MOST_SHOWN:
                is_gap = np.isnan(X)
                for cell in bad_cells:
                    is_gap[cell] = False
                gaps = np.argwhere(is_gap[:, self._gaps_refused])[:MOST_SHOWN]
                for row, position in gaps.tolist():
                    name = self._columns[self._gaps_refused[position]].name
                    self._gaps.append((begin + row, name, "empty"))
            self._guard.add_batch(X, spread)
            self._spool.write(X)
            if batch.original:
                self._original.write(np.column_stack(batch.original))

    def _read_ids(self, begin: int, ids: Sequence[pa.Array]) -> None:
        uses_match_keys = bool(self._options.match_key_columns)
        if uses_match_keys:
            codes = self._options.file_dialect.codes
            ids = [without_codes(part, codes) for part in ids]
        row_ids, empty = join_ids(ids)
        self._ids.write([row_ids])
        if not uses_match_keys:
            for row in np.flatnonzero(empty).tolist():
                self._add_problem(begin + row, ", ".join(self._naming), NO_ID)
        first = to_texts(ids[0])
        rows = guards.find_totals(row_ids if len(ids) == 1 else first)
        self._totals += (begin + rows).tolist()
        is_header = compute.equal(compute.utf8_trim_whitespace(first), self._naming[0])
        for row in compute.indices_nonzero(is_header).to_pylist():
            self._add_problem(begin + row, self._naming[0], HEADER)

    def _convert_cells(
        self, batch: Batch
    ) -> tuple[FloatArray, list[tuple[int, int, str, str]]]:
        """Return float64 (n_rows, n_columns), and the cells that cannot be read.

        Each unreadable cell is a tuple of its row, column index, problem and kind of
        problem.
        """
        X = np.empty((len(batch.cells[0]), len(batch.cells)), order="F")
        unreadable = []
        pairs = zip(self._columns, batch.cells, strict=True)
        for index, (column, piece) in enumerate(pairs):
            X[:, index], faults = to_numbers(column, piece)
            for row, problem in faults:
                unreadable.append((row, index, problem, _describe_fault(column)))
                self._n_unreadable[index] += np.isnan(X[row, index])
            self._code_counts[index] += count_codes(column, piece)
        return X, unreadable

    def _add_value(self, row: int, index: int, kind: str, text: str) -> None:
        """Count the value of a wrong cell, grouped by ``kind`` of problem."""
        values = self._values.setdefault((index, kind), _WrongValues(row))
        values.row = min(values.row, row)
        values.n_rows += 1
        if text in values.counts or len(values.counts) < _MOST_VALUES:
            values.counts[text] += 1

    def _add_problem(self, row: int, name: str, fault: str) -> None:
        if len(self._problems) < 100:
            self._problems.setdefault((row, name if fault != HEADER else ""), fault)
        else:
            self._n_more_problems += 1

    @property
    def filled_columns(self) -> list[Column]:
        """Return the columns that have a name or a value."""
        pairs = zip(self._columns, self._guard.missing, strict=True)
        return [
            column
            for column, n_missing in pairs
            if n_missing < self._spool.n_rows or not UNNAMED.fullmatch(column.name)
        ]

    def build_result(self, name: str) -> tuple[CheckReport, Table | None]:
        """Return the report, and the table if there are no problems."""
        locations, findings = self._source.locations(), self._source.findings()
        problems = [(*cell, fault) for cell, fault in self._problems.items()]
        findings += _locate(problems, locations)
        cells = tuple[CellProblem, ...]()
        if any(finding.of_cell for finding in findings[:MOST_SHOWN]):
            cells = tuple(self._cell_problems(locations))
        findings += self._guard_findings(locations, has_problems=bool(findings))
        n_missing = self._guard.missing - self._n_unreadable
        n_gaps = int(n_missing[self._gaps_refused].sum())
        obstacles = [*self._find_unprepared(), *_locate(self._gaps, locations)]
        n_more_obstacles = max(0, n_gaps - len(self._gaps))
        n_more_obstacles += max(0, len(obstacles) - MOST_SHOWN)
        obstacles = obstacles[:MOST_SHOWN]
        warnings = [*self._source.names.warnings, *self._source.warnings]
        outliers = list[str]()
        if self._spool.n_rows:
            outliers, coded = find_codes(self._columns, self._spool)
            warnings += [*self._guard.warnings(), *coded]
        report = CheckReport(
            file=name,
            counts=locations.word,
            rows=self._spool.n_rows,
            columns=tuple(map(self._column_report, range(len(self._columns)))),
            dialect=self._source.format_description,
            problems=tuple(findings[:MOST_SHOWN]),
            more_problems=max(0, len(findings) - MOST_SHOWN) + self._n_more_problems,
            cells=cells,
            obstacles=tuple(obstacles),
            more_obstacles=n_more_obstacles,
            warnings=tuple(warnings),
            outliers=tuple(outliers),
            not_read=locations.n_omitted,
        )
        id_batches = self._ids.close()
        if findings:
            return report, None
        names = tuple(column.name for column in self._columns)
        headers = tuple(column.header or column.name for column in self._columns)
        return report, Table(
            report=report,
            naming=self._naming,
            column_specs=tuple(self._columns),
            ids=ArrowIds([batch.column(0) for batch in id_batches])
            if self._naming
            else None,
            locations=locations,
            spool=self._spool,
            unmapped=UnmappedCells(headers, self._changed, self._original)
            if self._changed or headers != names
            else None,
        )

    def _guard_findings(
        self, locations: RowLocations, *, has_problems: bool
    ) -> Iterator[Finding]:
        n_rows, guard = self._spool.n_rows, self._guard
        if not n_rows and not has_problems:
            yield Finding(what="there are no rows below the column names")
        names = [] if guards.RUNNING_NUMBER in self._allow else guard.running_columns
        for name in names:
            is_named = UNNAMED.fullmatch(name) is None
            fault = "looks like a row number" if is_named else "has no name"
            yield Finding(
                what=f"{fault}: name it as --id-column, leave it out with --columns, or "
                f"--allow {guards.RUNNING_NUMBER}",
                column=name,
            )
        if guards.TOTALS_ROW in self._allow:
            return
        # In other columns than the id, only a single such word in the last row counts.
        has_word = any(rows == [n_rows - 1] for rows in self._named_totals.values())
        last_rows = [n_rows - 1] if has_word or guard.has_totals else []
        for line in locations.numbers_of_rows(sorted({*self._totals, *last_rows})):
            yield Finding(
                what="looks like a row of totals: delete it, or --allow "
                f"{guards.TOTALS_ROW}",
                line=line,
            )

    def _find_unprepared(self) -> Iterator[Finding]:
        """Yield a finding for each kind of values that no preparation handles."""
        categories = () if self._options.preparation else ("categories",)
        for kind in ("words", "dates", *categories):
            names = [c.name for c in self._columns if _kind_to_prepare(c) == kind]
            hold, pronoun = ("holds", "it") if len(names) == 1 else ("hold", "them")
            advice = f": describe {pronoun} in a dictionary (coterie schema infer), or "
            if kind == "categories":
                advice = f", and no preparation of {pronoun} is agreed: "
            if names:
                yield Finding(
                    what=f"{format_names(names)} {hold} {kind}{advice}leave {pronoun} out "
                    "with --columns"
                )

    def _cell_problems(self, locations: RowLocations) -> Iterator[CellProblem]:
        wrong_values = sorted(self._values.items(), key=lambda item: item[0][0])
        first_rows = [values.row for _, values in wrong_values]
        lines = locations.numbers_of_rows(first_rows)
        single = Counter(values.row for _, values in wrong_values if values.n_rows == 1)
        for ((index, kind), values), line in zip(wrong_values, lines, strict=True):
            # a row that is wrong in several columns may not belong to the data
            is_wrong_row = values.n_rows == 1 and single[values.row] > 1
            texts = [text for text, _ in values.counts.most_common()]
            yield CellProblem(
                column=self._columns[index].name,
                what=kind,
                values=tuple(values.counts.most_common()),
                n_rows=values.n_rows,
                line=line,
                hint=_hint_for(kind, texts, line if is_wrong_row else None),
            )

    def _column_report(self, index: int) -> ColumnReport:
        """Build the report on a column, without its range if it might contain ids."""
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


def _locate(
    problems: Sequence[tuple[int, str, str]], locations: RowLocations
) -> list[Finding]:
    """Return problems, each with its row and column, as findings with line numbers."""
    rows = sorted({row for row, _, _ in problems})
    lines = dict(zip(rows, locations.numbers_of_rows(rows), strict=True))
    return [
        Finding(
            what=fault,
            line=lines[row],
            column=name or None,
            of_cell=fault not in {HEADER, NO_ID},
        )
        for row, name, fault in sorted(problems)
    ]


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
