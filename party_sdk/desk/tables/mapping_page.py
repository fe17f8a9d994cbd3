"""The page on which a table's mapping is drafted, tried on the table, and edited."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from clustering_protocols.common.errors import CoterieError, InvalidData
from clustering_protocols.common.values import describe_finding
from clustering_protocols.shared_stages.statistics.units import CONVERSIONS
from clustering_protocols.terms.schema import Field, Schema
from coterie_pages.desk_models import CellLine, RowsPreview, VariableSource
from coterie_pages.models import Banner
from party_sdk.admission.table_files import TableSpec
from party_sdk.desk.responses import Form, banner_of
from party_sdk.desk.tables.named_file import csv_of, path_of, split_words
from party_sdk.tables import (
    CheckReport,
    Dialect,
    ReadOptions,
    Table,
    as_date,
    examine_table,
    first_rows,
)
from party_sdk.tables.drafts import (
    ColumnProposal,
    LevelProposal,
    Proposal,
    draft_mapping,
)
from party_sdk.tables.mapping import (
    ColumnMapping,
    TableMapping,
    parse_mapping_json,
    read_mapping,
)

NO_ID_COLUMN: Final = "-"
"""The form's value for a table without an id column."""
_ROWS: Final = 5
MAX_FIELDS: Final = 150
"""Maximum number of variables in a form; larger mappings need a file."""
_MAX_CELLS: Final = 30
_MAX_CANDIDATES: Final = 60
_AS_WRITTEN, _NONE, _LEVEL = "=", "-", "level:"
_NUMBERS: Final = frozenset({"number", "integer"})


def build_mapping_page(
    form: Form,
    folder: Path,
    schema: Schema,
    check: Callable[[TableSpec], CheckReport],
    current: TableMapping | None = None,
) -> tuple[dict[str, Any], Banner | None]:
    """Return the content of a table's mapping page, and a banner with any error.

    folder: the folder that relative paths are resolved against.
    schema: the dictionary that the mapped table has to match.
    check: checks the mapped table.
    current: the mapping in use, unless the form contains or names another one.

    Raises InvalidData if the table cannot be read at all.
    """
    if len(schema.used.names) > MAX_FIELDS:
        raise InvalidData(
            f"The dictionary has more than {MAX_FIELDS} variables: write the mapping in "
            "a file (coterie table --propose)."
        )
    path, csv = path_of(form, folder), csv_of(form)
    ids = ids_of(form)
    dialect = Dialect.parse(split_words(csv))
    base, trouble = current, None
    if text := form.get("mapping"):
        base = mapping_of(text)
    elif file := path_of(form, folder, "file"):
        base = read_mapping(Path(file))
    plain = ReadOptions(
        id_column=tuple(base.source_of(name) for name in ids) if base else ids,
        dialect=dialect,
        mapping=None if base is None else TableMapping(file=base.file),
    )
    proposal = draft_mapping(path, plain, schema.used)
    candidates = proposal.columns[0].candidates if proposal.columns else ()
    names = dict.fromkeys([*ids, *proposal.unused, *sorted(candidates)])
    titles, rows = first_rows(Path(path), plain)
    shown = mapping = base or proposal.to_mapping()
    if form.get("shown"):
        columns = _read_column_fields(form, mapping)
        try:
            shown = mapping = read_mapping_form(form, mapping, columns)
        except InvalidData as error:
            trouble, shown = banner_of(error), _unvalidated_mapping(columns)
    spec = TableSpec(
        path=path, options=ReadOptions(id_column=ids, dialect=dialect, mapping=mapping)
    )
    report = check(spec)
    variables = tuple(lines_of(proposal, shown))
    lines = " ".join(map(str, mapping.leave_out.lines))
    omitted = [
        f"{name} = {cell}"
        for name, cells in mapping.leave_out.values.items()
        for cell in cells
    ]
    content = {
        "path": path,
        "csv": csv,
        "ids": ids,
        "mapping": serialise_mapping(mapping),
        "variables": variables,
        "before": RowsPreview(names=tuple(titles), rows=tuple(map(tuple, rows))),
        "after": _preview_mapped_rows(spec, schema),
        "rows": report.row_count_text,
        "lines": lines if trouble is None else form.get("lines"),
        "omitted": omitted if trouble is None else form.get("omitted").splitlines(),
        "columns": tuple(names),
        "fits": not report.problems
        and trouble is None
        and all(cell.chosen for line in variables for cell in line.cells),
        "problems": report.problem_sentences,
        "warnings": report.warning_sentences,
    }
    return content, trouble


def has_unread_changes(form: Form) -> bool:
    """Return whether the fields of a mapping page change the mapping that it tried."""
    if not form.get("shown") or (base := mapping_of(form.get("mapping"))) is None:
        return False
    try:
        changed = read_mapping_form(form, base, _read_column_fields(form, base))
    except InvalidData:
        return True
    return changed != base


def ids_of(form: Form) -> tuple[str, ...]:
    """Return the id columns named in a form; empty if the table has none."""
    return tuple(name for name in form.get_all("id") if name not in {"", NO_ID_COLUMN})


def mapping_of(text: str) -> TableMapping | None:
    """Parse the mapping in a hidden field; return None if the field is empty.

    Raises InvalidData if the field does not contain a mapping.
    """
    return parse_mapping_json(text, "mapping") if text.strip() else None


def serialise_mapping(mapping: TableMapping) -> str:
    """Serialise a mapping to one line of JSON for a hidden field."""
    return mapping.model_dump_json(exclude_defaults=True, by_alias=True)


def _preview_mapped_rows(table: TableSpec, schema: Schema) -> RowsPreview:
    options = replace(table.options, schema=schema.used)
    try:
        _, read = examine_table(table.path, options)
    except CoterieError:
        return RowsPreview()
    return RowsPreview() if read is None else preview_of(read)


def preview_of(table: Table) -> RowsPreview:
    """Return the first five rows of a table, formatted for display."""
    first = np.arange(min(_ROWS, table.n_rows), dtype=np.int64)
    fields = [column.field for column in table.column_specs]
    return RowsPreview(
        names=tuple(table.columns),
        rows=tuple(
            tuple(map(_format_value, row.tolist(), fields)) for row in table.take(first)
        ),
    )


def _format_value(value: float, field: Field | None) -> str:
    if np.isnan(value):
        return ""
    if field is not None and field.is_category:
        return str(field.levels[int(value)])
    if field is not None and field.type == "boolean":
        return "yes" if value else "no"
    if field is not None and field.type == "date":
        return as_date(value)
    return f"{value:.6g}"


def lines_of(proposal: Proposal, mapping: TableMapping) -> Iterator[VariableSource]:
    """Yield each variable of the dictionary with its mapping and its column, if any."""
    for column in proposal.columns:
        source = mapping.source_of(column.name)
        source = source if source in column.candidates else ""
        plain = mapping.columns.get(column.name, ColumnMapping())
        is_drafted = source == (column.source or "")
        cells = column.cells if is_drafted else ()
        lines = tuple(
            CellLine(
                text=cell.text, n_rows=cell.count, chosen=_find_option(cell, plain)
            )
            for cell in cells[:_MAX_CELLS]
        )
        is_ambiguous = is_drafted and bool(column.two_readings) and not plain.sets_signs
        limits = any(cell.is_limit for cell in cells)
        candidates = column.candidates[:_MAX_CANDIDATES]
        if source and source not in candidates:
            candidates = (source, *candidates)
        yield VariableSource(
            proposal=column,
            mapping=plain,
            source=source,
            is_drafted=is_drafted,
            candidates=candidates,
            conversions=tuple(_conversions_for(column)),
            cells=lines,
            more_cells=max(0, len(cells) - _MAX_CELLS),
            options=_options_of(column),
            asks=not source
            or (limits and plain.limits is None)
            or is_ambiguous
            or not all(cell.chosen for cell in lines),
        )


def _conversions_for(column: ColumnProposal) -> list[str]:
    """Return the conversions to a variable's unit; those that match its name come first."""
    if column.type not in _NUMBERS:
        return []
    text = f"{column.name} {column.title}"
    unit = column.unit.casefold().replace(" ", "")
    conversions = [
        conversion
        for conversion in CONVERSIONS
        if conversion.quantity and conversion.second.casefold() == unit
    ]
    conversions.sort(key=lambda conversion: not conversion.matches(text))
    return [conversion.name for conversion in conversions]


def _find_option(cell: LevelProposal, mapping: ColumnMapping) -> str:
    if cell.text in mapping.levels:
        return f"{_LEVEL}{mapping.levels[cell.text]}"
    if cell.text in mapping.missing:
        return _NONE
    return "" if cell.perhaps else _AS_WRITTEN


def _options_of(column: ColumnProposal) -> dict[str, str]:
    levels = column.levels or (("yes", "no") if column.type == "boolean" else ())
    options = {_AS_WRITTEN: "as it is", _NONE: "no value"}
    return options | {f"{_LEVEL}{level}": level for level in levels}


def _read_column_fields(form: Form, base: TableMapping) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for number, name in enumerate(form.get_all("field")):
        source = form.get(f"source.{number}")
        if not source:
            continue
        base_column = base.columns.get(name)
        fields = _read_column(form, number, base_column)
        if source != name:
            fields["source"] = source
        if fields:
            columns[name] = fields
    return columns


def _unvalidated_mapping(columns: dict[str, Any]) -> TableMapping:
    return TableMapping.model_construct(
        columns={
            name: ColumnMapping.model_construct(**fields)
            for name, fields in columns.items()
        }
    )


def read_mapping_form(
    form: Form, base: TableMapping, columns: dict[str, Any]
) -> TableMapping:
    """Return the base mapping with the changes submitted in a form applied.

    columns: the submitted fields of each variable.

    Raises InvalidData if the form contradicts itself; the message contains no cell.
    """
    names = set(form.get_all("field"))  # without the id columns, whose mapping is kept
    columns = columns | {
        name: fields for name, fields in base.columns.items() if name not in names
    }
    fields = {
        "file": base.file,
        "columns": columns,
        "leave_out": {
            "lines": _read_lines(form.get("lines")),
            "values": _read_omitted(form.get("omitted")),
        },
    }
    try:
        return TableMapping.model_validate(fields)
    except ValidationError as error:
        finding = error.errors(include_input=False, include_url=False)[0]
        path = [part for part in finding["loc"] if part != "columns"]
        where = "".join(f"{part}: " for part in path[:2])
        raise InvalidData(f"{where}{describe_finding(finding)}.") from None


def _read_column(form: Form, number: int, base: ColumnMapping | None) -> dict[str, Any]:
    """Return a column's mapping from a form; cells not shown keep the base entry."""
    levels = {} if base is None else dict(base.levels)
    missing = [] if base is None else list(base.missing)
    pairs = zip(
        form.get_all(f"text.{number}"), form.get_all(f"cell.{number}"), strict=False
    )
    for text, option in pairs:
        levels.pop(text, None)
        missing = [code for code in missing if code != text]
        if option == _NONE:
            missing.append(text)
        elif option.startswith(_LEVEL):
            levels[text] = option.removeprefix(_LEVEL)
    parts: dict[str, Any] = {"levels": levels, "missing": missing}
    for part in ("factor", "offset"):
        parts[part] = form.get(f"{part}.{number}").strip().replace(",", ".")
    for part in ("convert", "limits", "minus"):
        parts[part] = form.get(f"{part}.{number}")
    # not stripped, because the thousands separator may be a space
    parts["thousands"], _, parts["decimal"] = form.get(f"written.{number}").rpartition(
        "_"
    )
    parts["dates"] = form.get(f"dates.{number}").split()
    return {
        part: value for part, value in parts.items() if value not in ("", [], {}, None)
    }


def _read_lines(text: str) -> Sequence[int]:
    words = text.replace(",", " ").split()
    if not all(word.isdecimal() for word in words):
        raise InvalidData("Lines to leave out are numbers, such as 347 348.")
    return [int(word) for word in words]


def _read_omitted(text: str) -> dict[str, list[str]]:
    cells: dict[str, list[str]] = {}
    for line in filter(str.strip, text.splitlines()):
        name, sign, value = line.partition("=")
        if not sign:
            raise InvalidData(
                "Rows to leave out by a cell: Column = cell, one per line."
            )
        cells.setdefault(name.strip(), []).append(value.strip())
    return cells
