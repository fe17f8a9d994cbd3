"""The analyst role: k-means on the codes of all parties, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Reopen,
    SessionContext,
    ask_all,
)
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.records import Record

from . import declared, messages, subspaces


class PqmdsAnalyst(AnalystRole):
    """One round: codes in, labels out."""

    state = messages.Waiting

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody for codes."""
        if subspaces.params_of(session).privacy.mechanism != "none":
            for slot in session.slots:
                declared.ranges(session, slot)
        n_rows, wanted = _n_rows(session), subspaces.params_of(session).n_clusters
        if wanted > n_rows:
            raise ProtocolFailed(f"n_clusters is {wanted}; there are {n_rows} rows.")
        return ask_all(
            session,
            messages.Encode(),
            expects=messages.Codes,
            state=messages.Waiting(),
            dims={
                slot: {"n": n_rows, "s": count}
                for slot, count in subspaces.counts(session).items()
            },
        )

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Return the labels of all rows, and to each party its part of the centres."""
        params = subspaces.params_of(session)
        codes = [messages.Codes.narrow(contributions[slot]) for slot in session.slots]
        Z = np.hstack([each.codes for each in codes])
        rng = session.generator("pqmds", "starts")
        starts = draw_starts(Z, params.n_clusters, params.n_init, rng)
        return _finish(session, kmeans(Z, starts, params.max_iter))


def _n_rows(session: SessionContext) -> int:
    return session.n_rows(session.slots[0])


def _finish(session: SessionContext, found: Clustering) -> Finish:
    sizes = np.bincount(found.labels, minlength=len(found.centroids))
    results: dict[str, Record] = {}
    begin = 0
    for slot, count in subspaces.counts(session).items():
        results[slot] = messages.Clusters(
            labels=found.labels,
            cluster_sizes=sizes,
            centroids=np.ascontiguousarray(found.centroids[:, begin : begin + count]),
        )
        begin += count
    summary = messages.Summary(
        cluster_sizes=sizes,
        starts=found.starts,
        inertia=found.inertia,
        n_codes=begin,
    )
    return Finish(results=results, summary=summary)
