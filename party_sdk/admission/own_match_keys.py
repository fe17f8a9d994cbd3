"""Own rows beside the match keys of the terms; nothing of it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.alignment.match_keys.key_values import (
    KeyValues,
    key_values,
)
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.shared_stages.row_selection import shares_rows

if TYPE_CHECKING:
    from clustering_protocols.numerics.data_source import DataSource
    from clustering_protocols.terms.terms import Terms

_FEW: Final = 0.5


def found_keys(terms: Terms, slot: str, data: DataSource) -> list[KeyValues]:
    """Return the values of the match keys of a slot's rows; none where ids name them."""
    params = check_terms(terms)
    if (
        not isinstance(params, AlignedParams)
        or not params.linked_by
        or not shares_rows(terms, slot)
        or data.ids is None
    ):
        return []
    said = params.alignment
    return key_values(data.ids, said.match_keys, said.normalisation)


def key_warnings(found: Sequence[KeyValues]) -> list[str]:
    """Return the keys that few rows have, and how many rows have a value of none."""
    told = [
        f"{each.n_filled} of {len(each.values)} rows have a value of the match key "
        f"{each.key!r}"
        for each in found
        if each.n_filled < _FEW * len(each.values)
    ]
    rows = zip(*(each.values for each in found), strict=True)
    n_bare = sum(not any(row) for row in rows)
    if n_bare:
        told.append(
            f"{n_bare} rows are linked to nobody: of each match key they have no value, "
            "or one that another row has"
        )
    return told
