"""Tables as institutions have them: whatever a party holds becomes rows of float64.

Files are read by DuckDB (text, JSON, Parquet), calamine (Excel) and pyreadstat (SPSS,
SAS, Stata), databases by psycopg, data frames by narwhals. What cannot be read is told
with its line.
"""

from party_sdk.tables.mapping.mapping_files import read_mapping, write_mapping
from party_sdk.tables.mapping.model import TableMapping
from party_sdk.tables.names import IdColumns
from party_sdk.tables.parsing.dialect import Dialect
from party_sdk.tables.proposals.proposal import Proposal
from party_sdk.tables.proposals.proposer import propose
from party_sdk.tables.read_options import How
from party_sdk.tables.report import CheckReport
from party_sdk.tables.table import Table
from party_sdk.tables.table_opening import examine, open_as, open_table, read_table

__all__ = [
    "CheckReport",
    "Dialect",
    "How",
    "IdColumns",
    "Proposal",
    "Table",
    "TableMapping",
    "examine",
    "open_as",
    "open_table",
    "propose",
    "read_mapping",
    "read_table",
    "write_mapping",
]
