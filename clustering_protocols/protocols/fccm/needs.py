"""What a session of fuzzy co-clustering takes: sums over all objects in every round."""

from __future__ import annotations

from clustering_protocols.contract.sizing import WORD, Extent, Sizes

from . import starts
from .params import CoClustering

_TOTALS = 6  # the total, shares on their way to it, and both as bytes


class CoClusteringSizes(Sizes[CoClustering]):
    """What a session of fuzzy co-clustering takes."""

    def upload_bytes(self, params: CoClustering, extent: Extent) -> int:
        """Return the bytes of all updates, if no start rests before the last."""
        words = starts.n_words(params, extent.rows, params.n_init)
        return WORD * words * (params.max_iter + 1)

    def memory_bytes(self, params: CoClustering, extent: Extent) -> int:
        """Return the bytes of a total and the shares on their way to it."""
        return WORD * _TOTALS * starts.n_words(params, extent.rows, params.n_init)
