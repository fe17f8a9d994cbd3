"""What a session of lossless federated clustering takes: an exchange for every update.

Where rows are split what is exchanged does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from clustering_protocols.terms.terms import Layout

from . import closing_sums
from .column_sample import sample_of
from .params import FROM_PARTIES, LosslessFederated

_BATCHES = 1 << 26  # a batch of rows and what is made of it
_PARTY_COPIES = 3  # rows as they are and scaled, and labels
_UPDATE_COPIES = 6  # distances of all rows: summed, decoded, told


class LlfSizes(Sizes[LosslessFederated]):
    """What a session of lossless federated clustering takes."""

    def needs(self, params: LosslessFederated, extent: Extent) -> Needs:
        """Return bytes, memory and work, for as many updates as the extent says."""
        rows = extent.layout.n_column_groups == 1
        updates = extent.updates or params.max_iter + (not rows)
        n, k, own = extent.rows, params.n_clusters, extent.party_features
        n_own = extent.party_rows
        pooled = message_flows.list_pooling_flows(
            extent, moments=params.scaling == "standard", ranges=False
        )
        result = WORD * n * (1 + k * (params.output == "memberships"))
        flow = (_of_rows if rows else _of_columns)(params, extent, updates)
        whole = traffic(
            extent,
            [*message_flows.list_setup_flows(extent), *pooled, *flow],
            results=0 if rows else result * (extent.parties + 1),
        )
        exchanged = k * (own + 1) if rows else _UPDATE_COPIES * n * k
        kept = n_own * (_PARTY_COPIES * own + k * params.fuzzy)
        split = "rows" if rows else "columns"
        return Needs(
            **whole._asdict(),
            analyst_memory=PROCESS + WORD * exchanged * (extent.parties if rows else 1),
            party_memory=PROCESS
            + _BATCHES
            + WORD * (kept + (0 if rows else _UPDATE_COPIES * n * k)),
            measured_as=f"{params.algorithm}, {split} split",
            analyst_work=float(extent.parties * updates * k) * (own if rows else n),
            party_work=float(n_own) * own * k * updates,
        )

    def updates_that_fit(
        self, params: Sequence[LosslessFederated], layout: Layout, n_rows: int
    ) -> int | None:
        """Return how many updates of every run fit the audit of hard clusters."""
        if params[0].fuzzy or layout.n_column_groups > 1:
            return None
        from . import row_audit  # not above: anyone who asks for bytes needs no kernels

        k = sum(run.n_clusters - 1 for run in params) + 1
        return row_audit.updates_that_fit(n_rows, k, params[0].n_init)


def _of_rows(params: LosslessFederated, extent: Extent, updates: int) -> Iterator[Flow]:
    k, d = params.n_clusters, extent.features
    sums = WORD * (k * (d + 1) + params.is_masked)
    centroids = WORD * k * d
    start, own = params.start, WORD * k * d * params.n_init
    if start == "careful":
        sizes = WORD * k * params.n_init
        yield Flow(envelopes=1, sealed=own + sizes, senders=extent.parties - 1)
    if start in FROM_PARTIES:
        yield Flow(envelopes=extent.parties - 1, sealed=own, senders=1)
        yield Flow()
    if params.n_init > 1:
        race = WORD * (params.n_init * (k * (d + 1) + 1) + 1)
        yield Flow(answer=race)
        yield Flow(task=race)
    end = WORD * closing_sums.n_words_of_labels(params, d)
    around = WORD * closing_sums.n_words_around(params)
    yield Flow(updates, answer=sums, task=sums, state=sums)
    yield Flow(answer=end, task=sums, state=sums)
    yield Flow(answer=around, task=end, state=sums)
    yield Flow(answer=centroids, task=end + around, state=sums, senders=1)


def _of_columns(
    params: LosslessFederated, extent: Extent, updates: int
) -> Iterator[Flow]:
    n, k = extent.rows, params.n_clusters
    distances = WORD * n * k
    told = distances if params.fuzzy else WORD * n
    noted = 2 * distances if params.fuzzy else WORD * n
    if params.start == "careful":
        sample = sample_of(n, extent.features)
        yield Flow(answer=WORD * sample.n_rows * sample.n_groups)
        yield Flow(task=WORD * sample.n_rows)
    yield Flow(answer=distances)
    yield Flow(updates - 1, answer=distances, task=told, state=noted)
    yield Flow(answer=2 * WORD, task=WORD * n, state=noted)
