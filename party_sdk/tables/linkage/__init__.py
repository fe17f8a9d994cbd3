"""Match keys at home: proposed from a table, shown on it, and rows that they left out."""

from party_sdk.tables.linkage.key_preview import preview_keys
from party_sdk.tables.linkage.person_columns import person_columns
from party_sdk.tables.linkage.proposed_keys import (
    candidate_keys,
    link_ids,
    preview_of,
    propose_match_keys,
)
from party_sdk.tables.linkage.unlinked_rows import (
    UnlinkedRow,
    tell_unlinked,
    unlinked_rows,
    write_unlinked,
)
from party_sdk.tables.report import KeyPreview

__all__ = [
    "KeyPreview",
    "UnlinkedRow",
    "candidate_keys",
    "link_ids",
    "person_columns",
    "preview_keys",
    "preview_of",
    "propose_match_keys",
    "tell_unlinked",
    "unlinked_rows",
    "write_unlinked",
]
