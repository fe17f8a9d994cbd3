"""Match keys for a table: the surest first, of those whose values are nearly unique.

A key is proposed if the table has its columns, enough rows have a value, and nearly no
two rows share one. Whether two parties then find the same people shows only between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.shared_stages.alignment.identifiers import join
from clustering_protocols.shared_stages.alignment.match_keys.key_values import (
    key_values,
)
from clustering_protocols.shared_stages.alignment.match_keys.match_key import columns_of
from clustering_protocols.shared_stages.alignment.params import Alignment
from party_sdk.tables.columns import texts, without_codes
from party_sdk.tables.linkage.key_preview import preview_keys
from party_sdk.tables.linkage.person_columns import person_columns
from party_sdk.tables.read_options import How
from party_sdk.tables.report import KeyPreview
from party_sdk.tables.table_opening import column_names, read_cells

_PARTS: Final = {
    "number": "{number} | no-punctuation",
    "given": "{given} | transliterate | no-punctuation",
    "surname": "{surname} | transliterate | no-punctuation",
    "names": "{given}, {surname} | transliterate | sorted-names",
    "given sound": "{given} | soundex",
    "surname sound": "{surname} | soundex",
    "given start": "{given} | transliterate | first:3",
    "surname start": "{surname} | transliterate | first:3",
    "birth": "{birth} | date",
    "year": "{birth} | year",
    "year and month": "{birth} | year-month",
    "month and day": "{birth} | month-day",
    "sex": "{sex} | first:1",
    "postcode": "{postcode} | no-punctuation",
    "city": "{city} | transliterate | no-punctuation",
    "street": "{street} | transliterate | no-punctuation",
    "phone": "{phone} | digits",
    "mail": "{mail}",
}
_KEYS: Final = (
    ("number",),
    ("given", "surname", "birth"),
    ("names", "birth"),
    ("given sound", "surname sound", "birth"),
    ("surname", "birth", "postcode"),
    ("given", "birth", "postcode"),
    ("given", "surname", "street"),
    ("birth", "city"),
    ("surname", "street", "postcode"),
    ("given", "street", "postcode"),
    ("birth", "street"),
    ("given", "surname", "phone"),
    ("birth", "phone"),
    ("birth", "mail"),
    ("surname", "mail"),
    ("given start", "surname start", "birth"),
    ("given", "surname", "year and month", "postcode"),
    ("given", "surname", "month and day", "postcode"),
    ("given sound", "birth", "sex", "postcode"),
    ("given", "surname", "year", "postcode"),
    ("given", "surname", "city"),
    ("birth", "postcode", "sex"),
    ("birth", "postcode"),
)
"""What makes a key, the surest first; one that the columns do not make is left out."""


def propose_match_keys(table: Any, how: How) -> tuple[KeyPreview, ...]:
    """Return match keys of the columns that name people in a table, the surest first.

    Also those whose values too many rows share: see :attr:`KeyPreview.serves`.

    Raises InvalidData if the table has no such columns, or cannot be read.
    """
    roles = person_columns(column_names(table, how))
    keys = candidate_keys(roles)
    if not keys:
        raise InvalidData(
            "No columns name people: a key takes names, a birth date, an address. Rename "
            "columns, or write keys yourself, e.g. 'surname | soundex + birth_date | date'."
        )
    return preview_of(table, how, keys)


def preview_of(table: Any, how: How, keys: Sequence[str]) -> tuple[KeyPreview, ...]:
    """Return how a table's rows look by match keys, normalised as usual.

    Raises InvalidData if the table lacks a column, or cannot be read.
    Raises ValueError if a key is none.
    """
    ids = link_ids(table, how, keys)
    return preview_keys(key_values(ids, keys, Alignment().normalisation))


def candidate_keys(roles: Mapping[str, str]) -> list[str]:
    """Return the keys that columns of these roles make."""
    found = []
    for parts in _KEYS:
        said = [_PARTS[part] for part in parts]
        try:
            found.append(" + ".join(each.format_map(roles) for each in said))
        except KeyError:
            continue
    return found


def link_ids(table: Any, how: How, keys: Sequence[str]) -> list[str]:
    """Return the ids of a table's rows where keys link them: their columns' cells."""
    codes, columns = how.file_dialect.codes, columns_of(keys)
    ids: list[str] = []
    for batch in read_cells(table, how, naming=columns).batches:
        cells = [
            without_codes(texts(each), codes).to_pylist() for each in batch.columns
        ]
        ids += [join(row) for row in zip(*cells, strict=True)]
    return ids
