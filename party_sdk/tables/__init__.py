"""Tables as institutions have them: whatever a party holds becomes rows of float64.

DuckDB reads files of text and Parquet, calamine Excel, pyreadstat SPSS, SAS and Stata,
narwhals data frames. What cannot be read is reported with its line.
"""

from party_sdk.tables.cells import Dialect
from party_sdk.tables.guards import as_date, lone_values
from party_sdk.tables.read_options import How, IdColumns
from party_sdk.tables.report import CheckReport, Finding
from party_sdk.tables.table import ArrowIds, Table
from party_sdk.tables.table_opening import (
    LongForm,
    column_names,
    examine,
    first_rows,
    open_as,
    open_long,
    open_table,
    read_column,
    read_objects,
    read_table,
    sheet_names,
)

__all__ = [
    "ArrowIds",
    "CheckReport",
    "Dialect",
    "Finding",
    "How",
    "IdColumns",
    "LongForm",
    "Table",
    "as_date",
    "column_names",
    "examine",
    "first_rows",
    "lone_values",
    "open_as",
    "open_long",
    "open_table",
    "read_column",
    "read_objects",
    "read_table",
    "sheet_names",
]
