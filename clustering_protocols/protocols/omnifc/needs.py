"""What a session of OmniFC takes: shares of all rows, and distances."""

from __future__ import annotations

from clustering_protocols.preparation import flows
from clustering_protocols.sizing import WORD, Extent, Flow, Needs, traffic

from . import limits
from .params import OmniFC


def needs(params: OmniFC, extent: Extent) -> Needs:
    """Return bytes, memory and work; memory as :mod:`.limits` bounds it."""
    n, d, k = extent.rows, extent.features, params.n_clusters or 1
    width = -(-d // params.segments)
    pooled = params.ranges == "pooled"
    shares = Flow(envelopes=extent.parties - 1, sealed=WORD * extent.party_rows * width)
    memberships = k if params.algorithm == "fuzzy_cmeans" else 0
    whole = traffic(
        extent,
        [
            *flows.beginning(extent),
            *flows.pooled(
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
