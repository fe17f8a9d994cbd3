"""What a session of lossless federated clustering takes: an exchange for every update.

Where rows are split, what is exchanged does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.contract.sizing import WORD, Extent, Sizes
from clustering_protocols.terms.terms import Layout

from .params import LosslessFederated

_UPDATE_COPIES = 6  # distances of all rows: summed, decoded, sent


class LlfSizes(Sizes[LosslessFederated]):
    """What a session of lossless federated clustering takes."""

    def upload_bytes(self, params: LosslessFederated, extent: Extent) -> int:
        """Return the bytes of sums, or of distances where columns are split."""
        return WORD * params.max_iter * _words(params, extent)

    def memory_bytes(self, params: LosslessFederated, extent: Extent) -> int:
        """Return the bytes of the analyst's totals of an update."""
        return WORD * _UPDATE_COPIES * _words(params, extent)

    def updates_that_fit(
        self, params: Sequence[LosslessFederated], layout: Layout, n_rows: int
    ) -> int | None:
        """Return how many updates of every run fit the audit of hard clusters."""
        if params[0].fuzzy or layout.n_column_groups > 1:
            return None
        from . import row_audit  # not above: anyone who asks for bytes needs no kernels

        k = sum(run.n_clusters - 1 for run in params) + 1
        return row_audit.updates_that_fit(n_rows, k, params[0].n_init)


def _words(params: LosslessFederated, extent: Extent) -> int:
    """Return the numbers that a party sends in one update."""
    if extent.layout.n_column_groups == 1:
        return params.n_clusters * (extent.features + 1)
    return extent.rows * params.n_clusters
