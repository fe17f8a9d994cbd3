"""Own ids beside the patterns of the terms; nothing of it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.alignment import id_patterns
from clustering_protocols.shared_stages.alignment.match_keys.key_values import (
    key_values,
)
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.shared_stages.row_selection import shares_rows

if TYPE_CHECKING:
    from clustering_protocols.numerics.data_source import DataSource
    from clustering_protocols.terms.terms import Terms


def id_warnings(terms: Terms, slot: str, data: DataSource) -> list[str]:
    """Return how many ids look like the session's, where some do not, and what mends it.

    Of match keys: for how many rows each can be compared. Nothing where the terms have
    neither, or nobody else holds the same rows.
    """
    params = check_terms(terms)
    if not isinstance(params, AlignedParams) or not shares_rows(terms, slot):
        return []
    if params.linked_by and data.ids is not None:
        return _key_lines(params, data.ids)
    expected = params.alignment.id_patterns
    if not expected or data.ids is None:
        return []
    found = id_patterns.fit(expected, data.ids, params.alignment.normalisation)
    said = found.sentence(expected)
    return [said] if said else []


def _key_lines(params: AlignedParams, ids: Sequence[str]) -> list[str]:
    """Return the key that fewest rows have, and the one that most rows share."""
    said = params.alignment
    found = key_values(ids, said.match_keys, said.normalisation)
    rarest = min(found, key=lambda each: each.n_filled)
    shared = min(found, key=lambda each: each.uniqueness)
    said_of_all = (
        f"rows are linked by {len(found)} match keys. Fewest rows, {rarest.n_filled} of "
        f"{len(ids)}, have a value of {rarest.key!r}. Most rows share a value of "
        f"{shared.key!r}: {shared.uniqueness:.1%} are alone with theirs"
    )
    return [said_of_all]
