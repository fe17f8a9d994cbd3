"""What differs between two mappings, in names of columns and without any cell."""

from __future__ import annotations

from collections.abc import Iterator

from party_sdk.tables.mapping.model import ColumnMapping, TableMapping


def describe_differences(before: TableMapping, after: TableMapping) -> Iterator[str]:
    """Yield a part of a sentence on each thing that another mapping says otherwise."""
    if before.file != after.file:
        yield "how the file is written"
    if before.leave_out != after.leave_out:
        yield "which rows are left out"
    for name in sorted({*before.columns, *after.columns}):
        old = before.columns.get(name, ColumnMapping())
        new = after.columns.get(name, ColumnMapping())
        parts = [
            part
            for part, differs in (
                ("name in the table", before.source_of(name) != after.source_of(name)),
                ("levels", old.levels != new.levels),
                ("unit", old.unit != new.unit),
                ("codes of missing values", set(old.missing) != set(new.missing)),
            )
            if differs
        ]
        if parts:
            yield f"{name}: {', '.join(parts)}"
