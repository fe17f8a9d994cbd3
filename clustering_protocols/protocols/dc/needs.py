"""What a session of data collaboration takes: an upload of rows and anchors."""

from __future__ import annotations

from clustering_protocols.common.limits import are_held, graph_rows
from clustering_protocols.contract.sizing import (
    PROCESS,
    WORD,
    Extent,
    Flow,
    Needs,
    Sizes,
    traffic,
)
from clustering_protocols.shared_stages import message_flows

from . import anchors
from .params import DataCollaboration

_SPACE_COPIES = 3  # the common space, what k-means sorts, and a block's temporaries
_ROW_WORDS = 6  # distances, labels, and those as results
_GRAPH = 120  # words of ten neighbours, symmetrised and scaled, and Lanczos' vectors
_PARTY_COPIES = 8  # of rows and anchors: scaled, factored, projected, and as bytes


class DcSizes(Sizes[DataCollaboration]):
    """What a session of data collaboration takes."""

    def needs(self, params: DataCollaboration, extent: Extent) -> Needs:
        """Return bytes, memory and work."""
        n, k = extent.rows, params.n_clusters
        n_own, m_own = extent.party_rows, extent.party_features
        width = m_own - params.leaves_one_out
        r = anchors.n_anchors(params.anchor, extent.features)
        synthesised = WORD * r * m_own if params.synthesises_anchors else 0
        others, columns = extent.layout.n_row_groups - 1, extent.layout.n_column_groups
        whole = traffic(
            extent,
            [
                *message_flows.list_setup_flows(extent),
                *message_flows.list_pooling_flows(
                    extent, moments=params.needs_moments, ranges=params.needs_ranges
                ),
                *(
                    [Flow(envelopes=others, sealed=synthesised, senders=columns)]
                    if synthesised
                    else []
                ),
                Flow(answer=WORD * (n_own + r) * width),
            ],
            results=WORD * (n + (n_own + k) * extent.parties),
        )
        spectral = params.algorithm == "spectral"
        of_rows = n if are_held(n, extent.features) else 0
        held = graph_rows(n) if spectral else of_rows
        per_held = _SPACE_COPIES * extent.features + spectral * (
            _GRAPH + _SPACE_COPIES * k
        )
        maps = 4 * r * extent.features * extent.layout.n_row_groups
        return Needs(
            **whole._asdict(),
            analyst_memory=PROCESS + WORD * (n * _ROW_WORDS + held * per_held + maps),
            party_memory=PROCESS + WORD * _PARTY_COPIES * (n_own + r) * m_own,
            measured_as="" if spectral else params.algorithm,
            analyst_work=float(n) * extent.features * k * params.n_init,
            party_work=float(n_own + r) * m_own**2,
        )
