"""The party role: one site's share of the sums; memberships from the totals."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from clustering_protocols.algorithms.coincidence import n_alike, strongest
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, Reply
from clustering_protocols.contract.published import order_told_first
from clustering_protocols.numerics.data_source import DataSource, sparse_matrix
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.sums import partition_coefficient
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.secrets import group_mark

from . import maths, messages, site_state
from .messages import Memberships
from .params import CoClustering, FccmContext, check_weights


class FccmParty(
    PartyRole[CoClustering, messages.Add | messages.ReportSizes, Record, messages.Done]
):
    """Adds its share of the sums, and follows the memberships by the totals."""

    def reply(
        self,
        context: FccmContext,
        task: messages.Add | messages.ReportSizes,
        data: DataSource,
    ) -> Reply:
        """Return the next share, or at the end what may be told of the clusters."""
        if isinstance(task, messages.ReportSizes):
            return _tell(context, task)
        R = csr_array(sparse_matrix(data)[context.recall(RowOrder).order])
        if context.memory.get(Memberships) is None:
            every = list(range(context.session.params.n_init))
            said = (task.number, task.lanes, task.overflowed, task.total.size)
            if said != (1, every, [], 0):
                raise ProtocolFailed("The analyst asks for sums out of order.")
            known = site_state.first(context, R)
        else:
            known = site_state.follow_total(context, task, R)
        return Reply(contribution=_share(context, known, R), remember=[known])

    def foresee(self, context: FccmContext) -> Outcome | None:
        """Return labels and memberships once the measures of the run are known."""
        if context.memory.get(Figures) is None:
            return None
        return self.conclude(context, messages.Done(), None)

    def conclude(
        self, context: FccmContext, result: messages.Done, data: DataSource | None
    ) -> Outcome:
        """Return labels, memberships of objects and of this site's items."""
        known, params = context.recall(Memberships), context.session.params
        best = site_state.best_lane(known)
        travelled = site_state.lane_part(known.objects, [best], params.n_clusters)
        W = site_state.lane_part(known.items, [best], params.n_clusters)
        U = context.recall(RowOrder).restore(travelled)
        sizes = _sizes(U)
        large = _list_told(params, sizes)
        return Outcome(
            labels=strongest(U, maths.TIE),
            cluster_sizes=sizes,
            memberships=U,
            item_memberships=np.ascontiguousarray(W.T),
            report={
                "n_init": params.n_init,
                "start": best,
                "n_iterations": int(known.n_iterations[best]),
                "n_coinciding": n_alike(U, maths.TIE),
            },
            figures=(_figures(context, known, best),),
            order=order_told_first(len(sizes), large, sizes[large]),
        )


def _list_told(params: CoClustering, sizes: IntArray) -> IntArray:
    """Return the clusters that are large enough to be told of."""
    return np.flatnonzero(sizes >= params.min_cluster_rows)


def _tell(context: FccmContext, task: messages.ReportSizes) -> Reply:
    known, params = context.recall(Memberships), context.session.params
    if task.lanes:
        raise ProtocolFailed("The analyst asks for sizes while starts are under way.")
    # noise if the last total was not all's
    site_state.check_total(context, task, known)
    best = site_state.best_lane(known)
    U = site_state.lane_part(known.objects, [best], params.n_clusters)
    sizes = _sizes(U)
    mark = group_mark(context, "row", "told", np.append(sizes, best).tobytes())
    n_iterations, none = int(known.n_iterations[best]), sizes[:0]
    figures = _figures(context, known, best)
    if context.session.slots[0] != context.slot.name:
        mute = messages.SizeReport(
            clusters=none, sizes=none, n_iterations=n_iterations, digest=mark
        )
        return Reply(contribution=mute, remember=[figures])
    large = _list_told(params, sizes)
    told = messages.SizeReport(
        clusters=large,
        sizes=sizes[large],
        n_iterations=n_iterations,
        figures=figures.round_values(),
        digest=mark,
    )
    return Reply(contribution=told, remember=[figures])


def _figures(context: FccmContext, known: Memberships, best: int) -> Figures:
    """Return what the best start came to; no centroids, so no distances to them."""
    params = context.session.params
    U = site_state.lane_part(known.objects, [best], params.n_clusters)
    n_clusters = int(np.count_nonzero(_sizes(U)))
    return Figures(
        n_clusters=n_clusters,
        criterion=float(known.criteria[best]),
        partition_coefficient=partition_coefficient(
            float(np.square(U).sum()), len(U), _sizes(U)
        ),
        n_iter=int(known.n_iterations[best]),
        converged=bool(known.moved[best] <= params.tol),
    )


def _sizes(U: FloatArray) -> IntArray:
    """Return how many objects belong most to each cluster (C,)."""
    return np.bincount(strongest(U, maths.TIE), minlength=U.shape[1])


# The share


def _share(
    context: FccmContext, known: Memberships, R: csr_array
) -> messages.SiteShare:
    check_weights(context, known.weights)
    over = site_state.overflows(context, known)
    nothing = {"weights": np.zeros_like(known.weights)}
    added = known.model_copy(update=nothing) if over.any() else known
    of = site_state.sum_of(context, known.number, context.transcript)
    params = context.session.params
    of_sums, of_beside = site_state.encodings(context.session)
    sums = of_sums.encode(maths.aggregation(R, added.weights).reshape(-1))
    if params.is_global:
        beside = added.weights.sum(axis=0)
    else:  # the logarithms of this site's normalisers
        beside = added.shifts.reshape(-1, params.n_clusters).sum(axis=1)
    words = site_state.SUMS.share(
        context, np.concatenate([sums, of_beside.encode(beside)]), of
    )
    overflows = np.asarray(known.lanes)[over].tolist()
    if context.session.slots[0] != context.slot.name:
        return messages.SiteShare(words=words, overflows=overflows)
    n_iterations = int(known.n_iterations[known.lanes[0]])
    moved = float(known.moved[known.lanes].max())
    return messages.SiteShare(
        words=words,
        overflows=overflows,
        n_iterations=n_iterations,
        moved=float(f"{moved:.2g}") if n_iterations else None,
        under_way=site_state.lanes_under_way(context, known),
    )
