"""A source is read to its end: a report, and a table unless there are problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.validation_messages import did_you_mean
from party_sdk.tables import guards, names as named
from party_sdk.tables.columns import Column
from party_sdk.tables.mapping import TableMapping
from party_sdk.tables.problems.cell_problems import find_cell_problems
from party_sdk.tables.read_options import How
from party_sdk.tables.report import CheckReport
from party_sdk.tables.scratch import Scratch
from party_sdk.tables.source import Again, Source
from party_sdk.tables.table import Table
from party_sdk.tables.table_reading import TableReading


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
        try:
            reading = TableReading(
                source,
                columns,
                naming,
                how,
                allow,
                scratch,
            )
            reading.run()
        except Again:
            continue
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
    columns = [Column.of(name, kinds[name], how.schema, codes) for name in wanted]
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
