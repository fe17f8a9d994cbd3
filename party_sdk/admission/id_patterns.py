"""Own ids beside the patterns of the terms; nothing of it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.alignment import id_patterns
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.shared_stages.row_selection import shares_rows
from party_sdk.admission.own_match_keys import found_keys, key_warnings

if TYPE_CHECKING:
    from clustering_protocols.numerics.data_source import DataSource
    from clustering_protocols.terms.terms import Terms


def id_warnings(terms: Terms, slot: str, data: DataSource) -> list[str]:
    """Return how many ids look like the session's, where some do not, and what mends it.

    Of match keys: those of which few rows have a value. Nothing where the terms have
    neither, or nobody else holds the same rows.
    """
    params = check_terms(terms)
    if not isinstance(params, AlignedParams):
        return []
    if params.linked_by:
        return key_warnings(found_keys(terms, slot, data))
    if not shares_rows(terms, slot):
        return []
    expected = params.alignment.id_patterns
    if not expected or data.ids is None:
        return []
    found = id_patterns.fit(expected, data.ids, params.alignment.normalisation)
    said = found.sentence(expected)
    return [said] if said else []
