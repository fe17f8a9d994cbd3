"""What a session of fuzzy co-clustering takes: sums over all objects in every round."""

from __future__ import annotations

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

from . import starts
from .params import CoClustering

_TOTALS = 6  # the total, shares on their way to it, and both as bytes
_MEMBERSHIPS = 10  # U and what an iteration makes of it; a share, as words and as bytes
_PARTY_COPIES = 2


class CoClusteringSizes(Sizes[CoClustering]):
    """What a session of fuzzy co-clustering takes."""

    def needs(self, params: CoClustering, extent: Extent) -> Needs:
        """Return bytes, memory and work, if no start rests before the last update."""
        n, updates = extent.rows, extent.updates or params.max_iter + 1
        words = starts.n_words(params, n, params.n_init)
        whole = traffic(
            extent,
            [
                *message_flows.list_setup_flows(extent),
                Flow(answer=WORD * words),  # no total is told with the first question
                Flow(updates - 1, answer=WORD * words, task=WORD * words),
                Flow(task=WORD * words, answer=WORD * 60),
            ],
        )
        each = float(n) * params.n_clusters * params.n_init * updates
        return Needs(
            **whole._asdict(),
            analyst_memory=PROCESS + WORD * _TOTALS * words,
            party_memory=PROCESS
            + WORD * (_MEMBERSHIPS * words + _PARTY_COPIES * n * extent.party_features),
            measured_as="fccm",
            analyst_work=each * extent.parties,
            party_work=each * extent.party_features,
        )
