"""The analyst's role: k-means on the codes of all parties, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.contract import AnalystRole, Ask, Finish, Run
from clustering_protocols.numerics.row_blocks import ArrayRows, RowBlocks
from clustering_protocols.quality.rows import figures_of_clustering
from clustering_protocols.quality.runs import compare_runs
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.statistics import magnitudes

from . import messages
from .params import PqmdsSession, ProductQuantisation, n_codes_of


class PqmdsAnalyst(AnalystRole[ProductQuantisation, messages.RowCodes]):
    """Receives codes in a single round, and returns labels."""

    def start(self, session: PqmdsSession) -> Ask | Finish:
        """Ask all parties for the codes of their rows."""
        n_rows = session.n_rows(session.slots[0])
        return Ask.to_everybody(
            session,
            messages.Encode(),
            dims={
                slot: {"n": n_rows, "s": count}
                for slot, count in n_codes_of(session).items()
            },
        )

    def step(
        self,
        session: PqmdsSession,
        state: Record,
        contributions: Mapping[str, messages.RowCodes],
    ) -> Ask | Finish:
        """Cluster the codes; return labels, and each party's part of the centres."""
        for slot in session.slots:
            magnitudes.check_magnitudes(
                f"What {slot!r} sent", contributions[slot].codes
            )
        Z = ArrayRows(*(contributions[slot].codes for slot in session.slots))
        runs = [_run(session, params, Z) for params in session.runs]
        numbers = [params.n_clusters for params in session.runs]
        return Finish(runs=compare_runs(session, Z, numbers, runs))


def _run(session: PqmdsSession, params: ProductQuantisation, Z: RowBlocks) -> Run:
    rng, engine = session.generator("pqmds", "starts"), session.engine
    starts = draw_starts(Z, params.n_clusters, params.n_init, rng, engine)
    clustering = kmeans(Z, starts, params.max_iter, engine)
    labels, centroids = clustering.labels, clustering.centroids
    sizes = np.bincount(labels, minlength=len(centroids))
    results: dict[str, Record] = {}
    begin = 0
    for slot, count in n_codes_of(session).items():
        results[slot] = messages.Clusters(
            labels=labels,
            cluster_sizes=sizes,
            centroids=np.ascontiguousarray(centroids[:, begin : begin + count]),
        )
        begin += count
    summary = messages.Summary(
        cluster_sizes=sizes,
        starts=clustering.starts,
        inertia=clustering.inertia,
        n_codes=begin,
    )
    figures = figures_of_clustering(Z, clustering, engine)
    return Run(results=results, summary=summary, figures=figures)
