"""Tables as institutions have them: whatever a party holds becomes rows of float64.

Files are read by DuckDB (text, JSON, Parquet), calamine (Excel) and pyreadstat (SPSS,
SAS, Stata), databases by psycopg, data frames by narwhals. What cannot be read is told
with its line.
"""

from party_sdk.tables.dialect import Dialect
from party_sdk.tables.names import IdColumns
from party_sdk.tables.opening import How, examine, open_as, open_table, read_table
from party_sdk.tables.report import CheckReport
from party_sdk.tables.table import Table

__all__ = [
    "CheckReport",
    "Dialect",
    "How",
    "IdColumns",
    "Table",
    "examine",
    "open_as",
    "open_table",
    "read_table",
]
