"""Tables as institutions have them: whatever a party holds becomes rows of float64.

DuckDB reads files of text and Parquet, calamine Excel, pyreadstat SPSS, SAS and Stata,
narwhals data frames. What cannot be read is reported with its line.
"""

from party_sdk.tables.codes import as_date, lone_values
from party_sdk.tables.dialect import Dialect
from party_sdk.tables.long_form import LongForm, open_long, read_objects
from party_sdk.tables.names import IdColumns
from party_sdk.tables.read_options import How
from party_sdk.tables.report import CheckReport, Finding
from party_sdk.tables.spool import ArrowIds
from party_sdk.tables.table import Table
from party_sdk.tables.table_opening import (
    column_names,
    examine,
    first_rows,
    open_as,
    open_table,
    read_column,
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
