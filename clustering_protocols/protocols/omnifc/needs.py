"""What a session of OmniFC takes: shares of all rows, and distances."""

from __future__ import annotations

from clustering_protocols.contract.sizing import WORD, Extent, Sizes

from . import limits
from .params import OmniFC


class OmniFcSizes(Sizes[OmniFC]):
    """What a session of OmniFC takes."""

    def upload_bytes(self, params: OmniFC, extent: Extent) -> int:
        """Return the bytes of shares of own rows for each other party, and of distances."""
        width = -(-extent.features // params.segments)
        shares = WORD * extent.party_rows * width * (extent.parties - 1)
        return shares + limits.upload_bytes(params, extent.rows, extent.features)

    def memory_bytes(self, params: OmniFC, extent: Extent) -> int:
        """Return the analyst's memory as :mod:`.limits` bounds it."""
        return limits.analyst_bytes(params, extent.rows, extent.features)

    def most_rows(self, params: OmniFC, n_features: int) -> int:
        """Return max_rows, or fewer where their distances exceed memory_limit."""
        fit = limits.most_rows(
            lambda n: limits.analyst_bytes(params, n, n_features), params.memory_limit
        )
        return min(params.max_rows, fit)

    def beyond(self, params: OmniFC) -> str:
        """Return which of landmarks, max_rows and memory_limit help."""
        if params.distances == "all":
            return (
                "Distances between all rows grow with the square of their number: take "
                "distances 'landmarks', or raise max_rows and memory_limit."
            )
        return "Raise max_rows, and memory_limit where it takes more."
