"""What a session of product quantisation takes: one upload of codes."""

from __future__ import annotations

from clustering_protocols.common.limits import are_held
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

from . import subspaces
from .params import ProductQuantisation

_SPACE_COPIES = 3  # the codes side by side, what k-means sorts, and temporaries
_ROW_WORDS = 12
_PARTY_COPIES = 4  # rows, scaled; codes, and as bytes


class PqmdsSizes(Sizes[ProductQuantisation]):
    """What a session of product quantisation takes."""

    def needs(self, params: ProductQuantisation, extent: Extent) -> Needs:
        """Return bytes, memory and work."""
        n, m_own = extent.rows, extent.party_features
        codes = sum(width for _, width in subspaces.of(params, m_own))
        whole = traffic(
            extent,
            [*message_flows.list_setup_flows(extent), Flow(answer=WORD * n * codes)],
            results=2 * WORD * n * extent.parties,
        )
        space = codes * extent.parties
        per_row = are_held(n, space) * _SPACE_COPIES * space + _ROW_WORDS
        return Needs(
            **whole._asdict(),
            analyst_memory=PROCESS + WORD * n * per_row,
            party_memory=PROCESS + WORD * n * (_PARTY_COPIES * m_own + _ROW_WORDS),
            measured_as="kmeans, columns split",
            analyst_work=float(n) * space * params.n_clusters * params.n_init,
            party_work=float(n) * m_own * params.codebook_size,
        )
