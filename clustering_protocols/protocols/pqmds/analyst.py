"""The analyst role: k-means on the codes of all parties, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.contract import Again, AnalystRole, Ask, Finish, Plan, ask_all
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.records import Record

from . import messages, subspaces


class Analyst(AnalystRole):
    """One round: codes in, labels out."""

    state = messages.Waiting

    def start(self, plan: Plan) -> Ask | Finish:
        """Ask everybody for codes."""
        n_rows, wanted = _n_rows(plan), subspaces.params_of(plan).n_clusters
        if wanted > n_rows:
            raise ProtocolFailed(f"n_clusters is {wanted}; there are {n_rows} rows.")
        return ask_all(
            plan,
            messages.Encode(),
            expects=messages.Codes,
            state=messages.Waiting(),
            dims={
                slot: {"n": n_rows, "s": count}
                for slot, count in subspaces.counts(plan).items()
            },
        )

    def step(
        self, plan: Plan, state: Record, contributions: Mapping[str, Record]
    ) -> Ask | Again | Finish:
        """Return the labels of all rows, and to each party its part of the centres."""
        params = subspaces.params_of(plan)
        codes = [messages.Codes.narrow(contributions[slot]) for slot in plan.slots]
        Z = np.hstack([each.codes for each in codes])
        rng = plan.generator("pqmds", "starts")
        starts = draw_starts(Z, params.n_clusters, params.n_init, rng)
        return _finish(plan, kmeans(Z, starts, params.max_iter))


def _n_rows(plan: Plan) -> int:
    return plan.n_rows(plan.slots[0])


def _finish(plan: Plan, found: Clustering) -> Finish:
    sizes = np.bincount(found.labels, minlength=len(found.centroids))
    results: dict[str, Record] = {}
    begin = 0
    for slot, count in subspaces.counts(plan).items():
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
