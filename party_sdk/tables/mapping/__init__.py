"""A table is mended at home by a file that says how; nothing of it is sent."""

from party_sdk.tables.mapping.differences import describe_differences
from party_sdk.tables.mapping.mapping_files import (
    mapping_digest,
    parse_json,
    parse_mapping,
    read_mapping,
    write_mapping,
)
from party_sdk.tables.mapping.model import ColumnMapping, Limit, TableMapping

__all__ = [
    "ColumnMapping",
    "Limit",
    "TableMapping",
    "describe_differences",
    "mapping_digest",
    "parse_json",
    "parse_mapping",
    "read_mapping",
    "write_mapping",
]
