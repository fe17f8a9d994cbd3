"""Both roles: sites compute memberships from totals, and the analyst adds up shares.

| task → contribution |
|---|
| `add` → `share`, once per iteration and repeat, and once more |
| `tell` → `told` |
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_array

from clustering_protocols.algorithms.coincidence import (
    count_coinciding_clusters,
    strongest_clusters,
)
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Outcome,
    PartyRole,
    Reply,
    agreed,
    narrow_all,
)
from clustering_protocols.contract.published import order_published_first
from clustering_protocols.numerics.data_source import DataSource, sparse_matrix
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.round_numbers import round_rows
from clustering_protocols.quality.sums import partition_coefficient
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_tagged_shares
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.secrets import group_mac

from . import maths, messages, site_state
from .messages import Memberships
from .params import CoClustering, FccmContext, FccmSession, check_weights

Contributions = Mapping[str, Record]


class FccmAnalyst(AnalystRole[CoClustering, Record, messages.SumsState]):
    """Adds up shares that it cannot read; the sites decide when iterations end."""

    state = messages.SumsState

    def start(self, session: FccmSession) -> Ask | Finish:
        """Ask all sites for their shares of the first sums."""
        lanes = list(range(session.params.n_init))
        state = messages.SumsState(
            number=1, lanes=lanes, telling=False, tolerances=np.empty(0)
        )
        no_words = np.empty(0, dtype=np.uint64)
        task = messages.Add(number=1, lanes=lanes, overflowed=[], total=no_words)
        return _ask(session, state, task)

    def step(
        self,
        session: FccmSession,
        state: messages.SumsState,
        contributions: Contributions,
    ) -> Ask | Finish:
        """Ask for the next sums, or for the cluster sizes, or finish with the result."""
        if state.telling:
            return _finish_session(session, state, contributions)
        shares = narrow_all(messages.SiteShare, contributions)
        leader = shares[session.slots[0]]
        moved = state.tolerances
        if leader.moved is not None and leader.n_iterations > len(moved):
            moved = np.append(moved, leader.moved)
        total = add_tagged_shares(share.words for share in shares.values())
        lanes = leader.under_way
        overflowed = sorted({lane for s in shares.values() for lane in s.overflows})
        if lanes is None or not {*lanes, *overflowed} <= set(state.lanes):
            raise ProtocolFailed("A site names starts that are not under way.")
        number, kind = state.number + 1, messages.Add if lanes else messages.ReportSizes
        task = kind(
            number=number,
            lanes=lanes,
            overflowed=overflowed,
            total=total[:0] if overflowed else total,
        )
        state = messages.SumsState(
            number=number if lanes else 0,
            lanes=lanes,
            telling=not lanes,
            tolerances=moved,
        )
        return _ask(session, state, task)


def _ask(session: FccmSession, state: messages.SumsState, task: Record) -> Ask:
    dims: dict[str, dict[str, int]] = {}
    if not state.telling:
        n_rows = session.n_rows(session.slots[0])
        words = site_state.n_words(session.params, n_rows, len(state.lanes))
        dims = {slot: {"words": words} for slot in session.slots}
    progress = {
        "updates": len(state.tolerances),
        "of_at_most": session.params.max_iter,
        "moved": [float(moved) for moved in state.tolerances],
    }
    return Ask.to_everybody(session, task, state=state, dims=dims, progress=progress)


def _finish_session(
    session: FccmSession, state: messages.SumsState, contributions: Contributions
) -> Finish:
    reports = narrow_all(messages.SizeReport, contributions)
    agreed(reports, "digest", "the sizes of the clusters")
    leader = reports[session.slots[0]]
    fields = messages.PublishedResult.model_fields
    published = {name: getattr(leader, name) for name in fields}
    return Finish.with_results(
        dict.fromkeys(session.slots, messages.Done()),
        summary=messages.Summary(**published, tolerances=state.tolerances),
        figures=leader.figures,
        labelled_at_home=True,
    )


class FccmParty(
    PartyRole[CoClustering, messages.Add | messages.ReportSizes, Record, messages.Done]
):
    """Sends shares of the sums, and computes memberships from the totals."""

    def reply(
        self,
        context: FccmContext,
        task: messages.Add | messages.ReportSizes,
        data: DataSource,
    ) -> Reply:
        """Return the share of the next sums or, at the end, the report of the clusters."""
        if isinstance(task, messages.ReportSizes):
            return _report_sizes(context, task)
        R = csr_array(sparse_matrix(data)[context.recall(RowOrder).order])
        if context.memory.get(Memberships) is None:
            lanes = list(range(context.session.params.n_init))
            fields = (task.number, task.lanes, task.overflowed, task.total.size)
            if fields != (1, lanes, [], 0):
                raise ProtocolFailed("The analyst asks for sums out of order.")
            state = site_state.start(context, R)
        else:
            state = site_state.follow_total(context, task, R)
        return Reply(contribution=_build_share(context, state, R), remember=[state])

    def early_outcome(self, context: FccmContext) -> Outcome | None:
        """Return labels and memberships once this site has reported its final sizes."""
        if context.memory.get(Figures) is None:
            return None
        return self.conclude(context, messages.Done(), None)

    def conclude(
        self, context: FccmContext, result: messages.Done, data: DataSource | None
    ) -> Outcome:
        """Return labels, and memberships of objects and of this site's items."""
        state, params = context.recall(Memberships), context.session.params
        best = site_state.best_lane(state)
        U = site_state.lane_part(state.objects, [best], params.n_clusters)
        W = site_state.lane_part(state.items, [best], params.n_clusters)
        U = context.recall(RowOrder).restore_own_order(U)
        sizes = _count_sizes(U)
        large = np.flatnonzero(sizes >= params.min_cluster_rows)
        return Outcome(
            labels=strongest_clusters(U, maths.TIE),
            cluster_sizes=sizes,
            memberships=U,
            item_memberships=np.ascontiguousarray(W.T),
            report={
                "n_init": params.n_init,
                "start": best,
                "n_iterations": int(state.n_iterations[best]),
                "n_coinciding": count_coinciding_clusters(U, maths.TIE),
            },
            figures=(context.recall(Figures),),
            order=order_published_first(len(sizes), large, round_rows(sizes[large])),
        )


def _report_sizes(context: FccmContext, task: messages.ReportSizes) -> Reply:
    state, params = context.recall(Memberships), context.session.params
    if task.lanes:
        raise ProtocolFailed("The analyst asks for sizes while starts are under way.")
    # noise if another site received a different total in the previous round
    site_state.check_total(context, task, state)
    best = site_state.best_lane(state)
    U = site_state.lane_part(state.objects, [best], params.n_clusters)
    sizes = _count_sizes(U)
    figures = Figures(
        n_clusters=int(np.count_nonzero(sizes)),
        criterion=float(state.criteria[best]),
        partition_coefficient=partition_coefficient(
            float(np.square(U).sum()), len(U), sizes
        ),
        n_iter=int(state.n_iterations[best]),
        converged=bool(state.moved[best] <= params.tol),
    )
    leads = context.session.slots[0] == context.slot.name
    large = np.flatnonzero(sizes >= params.min_cluster_rows)
    published = large if leads else large[:0]
    report = messages.SizeReport(
        clusters=published,
        sizes=round_rows(sizes[published]),
        n_iterations=int(state.n_iterations[best]),
        figures=figures.round_values() if leads else None,
        digest=group_mac(context, "row", "told", np.append(sizes, best).tobytes()),
    )
    return Reply(contribution=report, remember=[figures])


def _count_sizes(U: FloatArray) -> IntArray:
    return np.bincount(strongest_clusters(U, maths.TIE), minlength=U.shape[1])


def _build_share(
    context: FccmContext, state: Memberships, R: csr_array
) -> messages.SiteShare:
    check_weights(context, state.weights)
    overflow = site_state.overflows(context.session, state)
    weights = np.zeros_like(state.weights) if overflow.any() else state.weights
    sum_encoding, encoding = site_state.encodings(context.session)
    sums = sum_encoding.encode(maths.aggregation(R, weights).reshape(-1))
    words = np.concatenate([sums, encoding.encode(weights.sum(axis=0))])
    masked_sum = site_state.masked_sum(context, state)
    words = site_state.SUMS.mask(context, words, masked_sum)
    overflows = np.asarray(state.lanes)[overflow].tolist()
    if context.session.slots[0] != context.slot.name:
        return messages.SiteShare(words=words, overflows=overflows)
    n_iterations = int(state.n_iterations[state.lanes[0]])
    moved = float(state.moved[state.lanes].max())
    return messages.SiteShare(
        words=words,
        overflows=overflows,
        n_iterations=n_iterations,
        moved=float(f"{moved:.2g}") if n_iterations else None,
        under_way=site_state.lanes_under_way(context, state),
    )
