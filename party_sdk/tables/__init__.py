"""Tables as institutions have them: whatever a party holds becomes rows of float64.

A source reads a file or a data frame as columns of Arrow with the places of its rows:
DuckDB cuts text files, calamine, pyreadstat and pyarrow copy other files in a process of
their own, narwhals takes data frames. ``table_reading`` passes over a source once, as a
mapping and a dictionary change it: numbers go to a spool, what is wrong to a report with
line, column and remedy. ``drafts`` proposes the dictionary and the mapping from the same
pass, and says what a person has to look at.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from party_sdk.tables.cells import Dialect
    from party_sdk.tables.guards import as_date, lone_values
    from party_sdk.tables.read_options import DEFAULTS, IdColumns, ReadOptions
    from party_sdk.tables.report import CheckReport, Finding
    from party_sdk.tables.table import ArrowIds, Table
    from party_sdk.tables.table_opening import (
        LongForm,
        column_names,
        examine,
        first_rows,
        open_as,
        open_long,
        open_source_of,
        open_table,
        read_column,
        read_objects,
        read_table,
        sheet_names,
    )

__all__ = [
    "DEFAULTS",
    "ArrowIds",
    "CheckReport",
    "Dialect",
    "Finding",
    "IdColumns",
    "LongForm",
    "ReadOptions",
    "Table",
    "as_date",
    "column_names",
    "examine",
    "first_rows",
    "lone_values",
    "open_as",
    "open_long",
    "open_source_of",
    "open_table",
    "read_column",
    "read_objects",
    "read_table",
    "sheet_names",
]

_MODULES = ("cells", "read_options", "report", "table", "guards", "table_opening")


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: the process of a reader needs none."""
    for module in _MODULES if name in __all__ else ():
        names = vars(import_module(f"{__name__}.{module}"))
        if name in names:
            return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
