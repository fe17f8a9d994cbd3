"""One page mends a table: a mapping is drafted, tried on the table, and changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clustering_protocols.common.errors import CoterieError, InvalidData
from clustering_protocols.terms.schema import Field, Schema
from coterie_pages.models.frame import Banner
from coterie_pages.models.table_mapping import RowsPreview
from party_sdk.admission.table_files import NamedTable
from party_sdk.desk.responses import Form, bad
from party_sdk.desk.tables.mapping_form import (
    MOST_FIELDS,
    lines_of,
    read_mapping_form,
    write_omitted,
)
from party_sdk.desk.tables.named_file import csv_of, path_of, split_words

if TYPE_CHECKING:
    from party_sdk.tables import CheckReport, Table
    from party_sdk.tables.mapping import TableMapping
    from party_sdk.tables.proposals import Proposal

NOTHING: Final = "-"
"""Stands for no column that names rows, where somebody said so."""
_ROWS: Final = 5


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
    check: Callable[[NamedTable], CheckReport]
    folder: Path
    kept: TableMapping | None = None


def mend(form: Form, place: MappingPlace) -> tuple[dict[str, Any], Banner | None]:
    """Return what the page says of a table and its mapping, and what is wrong.

    Raises InvalidData if the table cannot be read at all.
    """
    from party_sdk.tables import Dialect, How
    from party_sdk.tables.proposals import propose

    if len(place.schema.used.names) > MOST_FIELDS:
        raise InvalidData(
            f"The dictionary has more than {MOST_FIELDS} variables: write the mapping in "
            "a file (coterie table --propose)."
        )
    path, csv = path_of(form, place.folder), csv_of(form)
    ids = ids_of(form)
    dialect = Dialect.parse(split_words(csv))
    base, trouble = _base_of(form, place), None
    plain = How(
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
    named = NamedTable(
        path=path, how=How(id_column=ids, dialect=dialect, mapping=mapping)
    )
    report = place.check(named)
    said = {
        "place": place.address,
        "path": path,
        "csv": csv,
        "ids": ids,
        "mapping": field_of(mapping),
        "variables": tuple(lines_of(drafted, mapping)),
        "before": _first_rows(path, plain),
        "after": _prepared_rows(named, place.schema),
        "rows": report.counted_rows,
        "lines": " ".join(map(str, mapping.leave_out.lines)),
        "omitted": write_omitted(mapping),
        "columns": _names_of(drafted, ids),
        "fits": not report.problems and trouble is None,
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


def _first_rows(path: str, how: Any) -> RowsPreview:
    from party_sdk.tables import first_rows

    names, rows = first_rows(Path(path), how, _ROWS)
    return RowsPreview(names=tuple(names), rows=tuple(map(tuple, rows)))


def _prepared_rows(named: NamedTable, schema: Schema) -> RowsPreview:
    """Return the first rows as the dictionary has them; nothing where problems are."""
    from party_sdk.tables import examine

    how = replace(named.how, schema=schema.used)
    try:
        _, table = examine(named.path, how)
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
