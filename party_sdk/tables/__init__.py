"""Read an institution's table, in any supported format, as rows of float64.

A source yields the columns of a file or data frame as Arrow arrays, with the line
number of each row. DuckDB parses text files; calamine, pyreadstat and pyarrow convert
other files in a separate process; narwhals wraps data frames. ``table_reading`` passes
over a source once and applies the mapping and the dictionary: numbers go to an unnamed
temporary file (the spool), and problems to a report with line, column and remedy.
``drafts`` proposes a dictionary or a mapping, and marks what a person must decide.
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
        examine_table,
        first_rows,
        list_columns,
        open_clusterable,
        open_long_form,
        open_source_of,
        open_table,
        read_column,
        read_ids,
        read_sheet_names,
        read_table,
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
    "examine_table",
    "first_rows",
    "list_columns",
    "lone_values",
    "open_clusterable",
    "open_long_form",
    "open_source_of",
    "open_table",
    "read_column",
    "read_ids",
    "read_sheet_names",
    "read_table",
]

_MODULES = ("cells", "read_options", "report", "table", "guards", "table_opening")


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because the reader process needs none of them."""
    for module in _MODULES if name in __all__ else ():
        names = vars(import_module(f"{__name__}.{module}"))
        if name in names:
            return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
