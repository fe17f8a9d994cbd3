"""What a session of OmniFC takes: shares of all rows, and distances."""

from __future__ import annotations

from clustering_protocols.contract.sizing import (
    WORD,
    Extent,
    Flow,
    Needs,
    Sizes,
    traffic,
)
from clustering_protocols.shared_stages import message_flows

from . import limits
from .params import OmniFC


class OmniFcSizes(Sizes[OmniFC]):
    """What a session of OmniFC takes."""

    def needs(self, params: OmniFC, extent: Extent) -> Needs:
        """Return bytes, memory and work; memory as :mod:`.limits` bounds it."""
        n, d, k = extent.rows, extent.features, params.n_clusters or 1
        width = -(-d // params.segments)
        pooled = params.ranges == "pooled"
        shares = Flow(
            envelopes=extent.parties - 1, sealed=WORD * extent.party_rows * width
        )
        memberships = k if params.algorithm == "fuzzy_cmeans" else 0
        whole = traffic(
            extent,
            [
                *message_flows.list_setup_flows(extent),
                *message_flows.list_pooling_flows(
                    extent,
                    moments=pooled and params.scaling in {"standard", "none"},
                    ranges=pooled and params.scaling == "minmax",
                ),
                shares,
                Flow(answer=limits.upload_bytes(params, n, d)),
            ],
            results=2 * WORD * n * (1 + memberships),
        )
        pairs = limits.answer_pairs(params, n, d)
        kmeans = params.algorithm == "kmeans" and params.features == "embedding"
        return Needs(
            **whole._asdict(),
            analyst_memory=limits.analyst_bytes(params, n, d),
            party_memory=limits.party_bytes(params, n, d),
            measured_as=f"kmeans, {params.distances}" if kmeans else "",
            analyst_work=float(pairs) * (extent.parties + d)
            + float(n) * d * k * params.n_init,
            party_work=float(pairs) * (width + extent.parties),
        )

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
