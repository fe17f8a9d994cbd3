"""One page mends a table: a mapping is drafted, tried on the table, and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pydantic import ValidationError

from clustering_protocols.common.errors import CoterieError, InvalidData
from clustering_protocols.common.values import in_words
from clustering_protocols.shared_stages.statistics.units import CONVERSIONS
from clustering_protocols.terms.schema import Field, Schema
from coterie_pages.desk_models import CellLine, RowsPreview, VariableSource
from coterie_pages.models import Banner, Option
from party_sdk.admission.table_files import TableSpec
from party_sdk.desk.responses import Form, bad
from party_sdk.desk.tables.named_file import csv_of, path_of, split_words

if TYPE_CHECKING:
    from party_sdk.tables import CheckReport, Table
    from party_sdk.tables.drafts import ColumnProposal, LevelProposal, Proposal
    from party_sdk.tables.mapping import ColumnMapping, TableMapping

NOTHING: Final = "-"
"""Stands for no column that names rows, where somebody said so."""
_ROWS: Final = 5
MOST_FIELDS: Final = 150
"""Variables of a form; more are mapped in a file."""
_MOST_CELLS: Final = 30
_MOST_CANDIDATES: Final = 60
_SAME, _NONE, _LEVEL = "=", "-", "level:"
_NUMBERS: Final = frozenset({"number", "integer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingPlace:
    """Where a table is mended.

    address: of the page, below the root.
    schema: the dictionary that counts.
    check: returns what hinders a table.
    kept: the mapping that holds so far, if one is kept.
    folder: where relative paths start.
    """

    address: str
    schema: Schema
    check: Callable[[TableSpec], CheckReport]
    folder: Path
    kept: TableMapping | None = None


def mend(form: Form, place: MappingPlace) -> tuple[dict[str, Any], Banner | None]:
    """Return what the page says of a table and its mapping, and what is wrong.

    Raises InvalidData if the table cannot be read at all.
    """
    from party_sdk.tables import Dialect, ReadOptions
    from party_sdk.tables.drafts import propose

    if len(place.schema.used.names) > MOST_FIELDS:
        raise InvalidData(
            f"The dictionary has more than {MOST_FIELDS} variables: write the mapping in "
            "a file (coterie table --propose)."
        )
    path, csv = path_of(form, place.folder), csv_of(form)
    ids = ids_of(form)
    dialect = Dialect.parse(split_words(csv))
    base, trouble = _base_of(form, place), None
    plain = ReadOptions(
        id_column=tuple(base.source_of(name) for name in ids) if base else ids,
        dialect=dialect,
        mapping=None if base is None else _file_part(base),
    )
    drafted = propose(path, plain, place.schema.used)
    mapping = base or drafted.to_mapping()
    if form.one("shown"):
        try:
            mapping = read_mapping_form(form, mapping)
        except InvalidData as error:
            trouble = bad(error)
    named = TableSpec(
        path=path, options=ReadOptions(id_column=ids, dialect=dialect, mapping=mapping)
    )
    report = place.check(named)
    variables = tuple(lines_of(drafted, mapping))
    said = {
        "place": place.address,
        "path": path,
        "csv": csv,
        "ids": ids,
        "mapping": field_of(mapping),
        "variables": variables,
        "before": _first_rows(path, plain),
        "after": _prepared_rows(named, place.schema),
        "rows": report.counted_rows,
        "lines": " ".join(map(str, mapping.leave_out.lines)),
        "omitted": write_omitted(mapping),
        "columns": _names_of(drafted, ids),
        "fits": not report.problems
        and trouble is None
        and all(cell.chosen for line in variables for cell in line.cells),
        "problems": report.sentences,
        "warnings": report.warnings,
    }
    return said, trouble


def ids_of(form: Form) -> tuple[str, ...]:
    """Return the columns that name rows; none where a form says that nothing does."""
    return tuple(name for name in form.all("id") if name not in {"", NOTHING})


def mapping_of(text: str) -> TableMapping | None:
    """Return the mapping in a hidden field, which is one line; None of an empty one.

    Raises InvalidData if it is none.
    """
    from party_sdk.tables.mapping import parse_json

    return parse_json(text, "mapping") if text.strip() else None


def field_of(mapping: TableMapping) -> str:
    """Return a mapping as a hidden field has it."""
    return mapping.model_dump_json(exclude_defaults=True, by_alias=True)


def _base_of(form: Form, place: MappingPlace) -> TableMapping | None:
    """Return the mapping that a form begins with: its own, that of a file, or the kept."""
    from party_sdk.tables.mapping import read_mapping

    if text := form.one("mapping"):
        return mapping_of(text)
    if file := path_of(form, place.folder, "file"):
        return read_mapping(Path(file))
    return place.kept


def _file_part(mapping: TableMapping) -> TableMapping:
    from party_sdk.tables.mapping import TableMapping

    return TableMapping(file=mapping.file)


def _names_of(drafted: Proposal, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the table, those that name rows too."""
    known = drafted.columns[0].candidates if drafted.columns else ()
    return tuple(dict.fromkeys([*ids, *drafted.unused, *sorted(known)]))


def _first_rows(path: str, options: Any) -> RowsPreview:
    from party_sdk.tables import first_rows

    names, rows = first_rows(Path(path), options, _ROWS)
    return RowsPreview(names=tuple(names), rows=tuple(map(tuple, rows)))


def _prepared_rows(named: TableSpec, schema: Schema) -> RowsPreview:
    """Return the first rows as the dictionary has them; nothing where problems are."""
    from party_sdk.tables import examine

    options = replace(named.options, schema=schema.used)
    try:
        _, table = examine(named.path, options)
    except CoterieError:
        return RowsPreview()
    return RowsPreview() if table is None else preview_of(table)


def preview_of(table: Table) -> RowsPreview:
    """Return the first rows of a table as people read them."""
    first = np.arange(min(_ROWS, table.n_rows), dtype=np.int64)
    fields = [column.field for column in table.described]
    return RowsPreview(
        names=tuple(table.columns),
        rows=tuple(
            tuple(map(_format_value, row.tolist(), fields)) for row in table.take(first)
        ),
    )


def _format_value(value: float, field: Field | None) -> str:
    from party_sdk.tables import as_date

    if np.isnan(value):
        return ""
    if field is not None and field.is_category:
        return str(field.levels[int(value)])
    if field is not None and field.type == "boolean":
        return "yes" if value else "no"
    if field is not None and field.type == "date":
        return as_date(value)
    return f"{value:.6g}"


def lines_of(drafted: Proposal, mapping: TableMapping) -> Iterator[VariableSource]:
    """Yield the variables as a mapping has them, beside what was found in the table."""
    for column in drafted.columns:
        said = mapping.columns.get(column.name)
        yield _line(column, said, _source_of(column, mapping))


def _source_of(column: ColumnProposal, mapping: TableMapping) -> str:
    """Return what a variable comes from; empty where the table has no such column."""
    source = mapping.source_of(column.name)
    return source if source in column.candidates else ""


def _line(
    column: ColumnProposal, said: ColumnMapping | None, source: str
) -> VariableSource:
    from party_sdk.tables.mapping import ColumnMapping

    plain = said or ColumnMapping()
    is_drafted = source == (column.source or "")
    cells = column.cells if is_drafted else ()
    shown = tuple(
        CellLine(text=cell.text, n_rows=cell.count, chosen=_find_option(cell, plain))
        for cell in cells[:_MOST_CELLS]
    )
    has_two = is_drafted and bool(column.two_readings) and not plain.says_signs
    limits = any(cell.is_limit for cell in cells)
    return VariableSource(
        found=column,
        said=plain,
        source=source,
        is_drafted=is_drafted,
        candidates=_shown_candidates(column, source),
        conversions=tuple(_conversions_for(column)),
        cells=shown,
        more_cells=max(0, len(cells) - _MOST_CELLS),
        options=tuple(_options_of(column)),
        asks=not source
        or (limits and plain.limits is None)
        or has_two
        or not all(cell.chosen for cell in shown),
    )


def _shown_candidates(column: ColumnProposal, source: str) -> tuple[str, ...]:
    """Return the columns to choose from: of very many the nearest."""
    near = column.candidates[:_MOST_CANDIDATES]
    return near if not source or source in near else (source, *near)


def _conversions_for(column: ColumnProposal) -> Iterator[str]:
    """Yield the conversions into a variable's unit, those of its name first."""
    if column.type not in _NUMBERS:
        return
    about = f"{column.name} {column.title}"
    wanted = column.unit.casefold().replace(" ", "")
    known = [
        each
        for each in CONVERSIONS
        if each.quantity and each.second.casefold() == wanted
    ]
    for each in sorted(known, key=lambda found: not found.matches(about)):
        yield each.name


def _find_option(cell: LevelProposal, said: ColumnMapping) -> str:
    """Return the option that holds for a text."""
    if cell.text in said.levels:
        return f"{_LEVEL}{said.levels[cell.text]}"
    if cell.text in said.missing:
        return _NONE
    return "" if cell.perhaps else _SAME


def _options_of(column: ColumnProposal) -> Iterator[Option]:
    yield Option(value=_SAME, text="as it is")
    yield Option(value=_NONE, text="no value")
    levels = column.levels or (("yes", "no") if column.type == "boolean" else ())
    for level in levels:
        yield Option(value=f"{_LEVEL}{level}", text=level)


def read_mapping_form(form: Form, base: TableMapping) -> TableMapping:
    """Return what a form says, over a mapping that says the rest.

    Raises InvalidData if that contradicts itself; the sentence names no cell.
    """
    from party_sdk.tables.mapping import TableMapping

    columns: dict[str, Any] = {}
    for number, name in enumerate(form.all("field")):
        source = form.one(f"source.{number}")
        if not source:
            continue
        before = base.columns.get(name)
        said = _read_column(form, number, before)
        if source != name:
            said["source"] = source
        if said:
            columns[name] = said
    shown = set(form.all("field"))  # a column of ids is none of them
    columns |= {name: said for name, said in base.columns.items() if name not in shown}
    said = {
        "file": base.file,
        "columns": columns,
        "leave_out": {
            "lines": _read_lines(form.one("lines")),
            "values": _read_omitted(form.one("omitted")),
        },
    }
    try:
        return TableMapping.model_validate(said)
    except ValidationError as error:
        finding = error.errors(include_input=False, include_url=False)[0]
        place = [str(part) for part in finding["loc"][:2]]
        raise InvalidData(f"{': '.join(place)}: {in_words(finding)}.") from None


def _read_column(
    form: Form, number: int, before: ColumnMapping | None
) -> dict[str, Any]:
    """Return what a form says of one column, beside texts that it does not show."""
    levels = {} if before is None else dict(before.levels)
    missing = [] if before is None else list(before.missing)
    pairs = zip(form.all(f"text.{number}"), form.all(f"cell.{number}"), strict=False)
    for text, chosen in pairs:
        levels.pop(text, None)
        missing = [code for code in missing if code != text]
        if chosen == _NONE:
            missing.append(text)
        elif chosen.startswith(_LEVEL):
            levels[text] = chosen.removeprefix(_LEVEL)
    said: dict[str, Any] = {"levels": levels, "missing": missing}
    for part in ("factor", "offset"):
        said[part] = _read_number(form.one(f"{part}.{number}"), part)
    for part in ("convert", "limits", "minus"):
        said[part] = form.one(f"{part}.{number}")
    # a blank parts thousands: it is no empty field
    said["thousands"], _, said["decimal"] = form.one(f"written.{number}").rpartition(
        "_"
    )
    said["dates"] = form.one(f"dates.{number}").split()
    return {
        part: value for part, value in said.items() if value not in ("", [], {}, None)
    }


def _read_number(text: str, part: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InvalidData(f"The {part} of a unit is a number.") from None


def _read_lines(text: str) -> Sequence[int]:
    words = text.replace(",", " ").split()
    if not all(word.isdecimal() for word in words):
        raise InvalidData("Lines to leave out are numbers, such as 347 348.")
    return [int(word) for word in words]


def _read_omitted(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in filter(str.strip, text.splitlines()):
        name, sign, cell = line.partition("=")
        if not sign:
            raise InvalidData("Rows to leave out by a cell: Column = cell, one a line.")
        found.setdefault(name.strip(), []).append(cell.strip())
    return found


def write_omitted(mapping: TableMapping) -> str:
    """Return the cells by which rows are left out, as a form has them."""
    return "\n".join(
        f"{name} = {cell}"
        for name, cells in mapping.leave_out.values.items()
        for cell in cells
    )
