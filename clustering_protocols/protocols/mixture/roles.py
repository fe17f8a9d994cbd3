"""Both roles of the updates: parties move the components, and the analyst adds up shares.

| round | task → contribution |
|---|---|
| 1 to t | `update` → `sums`: the sums of an update |
| t + 1 | `update` → `sums`: the closing sums, after convergence or the last update |
| t + 2 | `tell` → `told`: the digest from all, and what the terms publish from the leader |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Final

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Outcome,
    PartyRole,
    Placement,
    Reply,
    agreed,
    narrow_all,
)
from clustering_protocols.contract.published import ClusterOrder, order_published_first
from clustering_protocols.numerics.data_source import (
    DataSource,
    check_column_count,
    iterate_batches,
)
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.moments import PooledMoments
from clustering_protocols.numerics.round_numbers import round_rows, rounding_steps
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.secrecy.masks import add_tagged_shares
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum
from clustering_protocols.shared_stages.scaling import Scaler, check_ranges, scaler_of
from clustering_protocols.shared_stages.secrets import group_mac
from clustering_protocols.shared_stages.starts import FROM_PARTIES
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.shared_stages.starts.roles import (
    ask_about_given_start,
    compute_start_alone,
)
from clustering_protocols.shared_stages.statistics import magnitudes
from clustering_protocols.shared_stages.sums import n_group_rows

from . import bound, messages, model as em
from .model import Closing, Columns, Densities, Shape
from .params import Mixture, MixtureContext, MixtureSession

_SUM: Final = CheckedSum(scope="column")
_Task = messages.Update | messages.ReportDigest


class MixtureAnalyst(AnalystRole[Mixture, Record, messages.UpdatingState]):
    """Adds up masked shares, which it cannot read, and sends totals with the next task."""

    state = messages.UpdatingState

    def start(self, session: MixtureSession) -> Ask:
        """Ask the parties for the first sums."""
        return _ask_for_sums(session, 1, np.empty(0, dtype=np.uint64))

    def step(
        self,
        session: MixtureSession,
        state: messages.UpdatingState,
        contributions: Mapping[str, Record],
    ) -> Ask | Finish:
        """Send the total with the next task, until the parties send the closing sums."""
        if state.phase == "tell":
            return _build_finish(
                session, narrow_all(messages.DigestReport, contributions)
            )
        shares = narrow_all(messages.Sums, contributions)
        total = add_tagged_shares(share.words for share in shares.values())
        if not agreed(shares, "last", "the last sums"):
            return _ask_for_sums(session, state.number + 1, total)
        return Ask.to_everybody(
            session,
            messages.ReportDigest(total=total),
            state=messages.UpdatingState(phase="tell", number=state.number),
            progress={"updates": state.number - 1},
        )


def _ask_for_sums(session: MixtureSession, number: int, total: WordArray) -> Ask:
    shape = Shape.of(session.params, bound.session_columns(session))
    return Ask.to_everybody(
        session,
        messages.Update(number=number, total=total),
        state=messages.UpdatingState(phase="update", number=number),
        dims={slot: {"w": shape.n_words + 1} for slot in session.slots},
        progress={
            "updates": number - 1,
            "of_at_most": bound.limit_updates(session),
            "moved": [],
        },
    )


def _build_finish(
    session: MixtureSession, reports: Mapping[str, messages.DigestReport]
) -> Finish:
    agreed(reports, "digest", "the result")
    leader = reports[session.slots[0]]
    magnitudes.check_magnitudes("The leader's result", leader.centroids)
    published = {name: getattr(leader, name) for name in messages.Summary.model_fields}
    return Finish.with_results(
        dict.fromkeys(session.slots, messages.Agreed()),
        summary=messages.Summary(**published),
        figures=leader.figures,
        labelled_at_home=True,
    )


@dataclass(frozen=True)
class RoundView:
    """A party's view of one round: its context, its scale and the shape of the model."""

    context: MixtureContext

    @cached_property
    def columns(self) -> Columns:
        """The columns that are numbers, and those that encode categories."""
        return bound.session_columns(self.context.session)

    @cached_property
    def shape(self) -> Shape:
        """The shape of the model."""
        return Shape.of(self.context.session.params, self.columns)

    @cached_property
    def scale(self) -> Scaler:
        """The scaler of the numbers."""
        return scaler_of(self.context)

    @cached_property
    def n_rows(self) -> int:
        """The number of rows of all parties."""
        return n_group_rows(self.context)

    @cached_property
    def high(self) -> FloatArray:
        """The value (m,) of each column of a level in rows that have this level."""
        return np.where(np.isfinite(self.scale.ranges.high), self.scale.ranges.high, 1)

    @property
    def pooled_variances_and_proportions(self) -> tuple[FloatArray, FloatArray]:
        """The scaled variances (F,) and the proportions (L,) of levels over all rows."""
        moments = self.context.recall(PooledMoments)
        variances = np.square(moments.spread * self.scale.inverse)
        proportions = self.columns.to_levels((moments.mean / self.high)[None])[0]
        return variances[self.columns.numbers], proportions

    def initial_components(self) -> messages.Components:
        """Return the components before the first update."""
        if self.context.session.params.start in FROM_PARTIES:
            V = self.context.recall(StartCentroids).centroids
        else:
            V = compute_start_alone(self.context, self.scale)
        weights = self.context.session.weights(
            self.context.slot.name, self.columns.width
        )
        V = equalise_coordinates(V, self.scale.step)
        return em.initial_components(self.shape, V, self.scale, weights)

    def read_total(
        self, before: messages.Components, total: WordArray, encoding: FixedPoint
    ) -> WordArray:
        """Unmask a total of the last sums and return its ring elements.

        Raises ProtocolFailed if the total is not the sum of the members' shares.
        """
        masked_sum = _masked_sum(self.context, before)
        return _SUM.unmask(self.context, total, masked_sum, encoding.fits)

    def apply_total(
        self, before: messages.Components, total: WordArray
    ) -> messages.Components:
        """Return the components that follow from the total of an update."""
        encoding = self.shape.encoding(before, self.scale, self.n_rows)
        sums = self.shape.split_sums(
            encoding.decode(self.read_total(before, total, encoding))
        )
        own = self.shape.split_sums(encoding.decode(before.own))
        em.check_total(
            self.shape,
            before,
            sums,
            own,
            self.pooled_variances_and_proportions,
            self.n_rows,
        )
        params = self.context.session.params
        return em.update_components(params, self.shape, before, sums, self.n_rows)

    def sum_rows(self, components: messages.Components, data: DataSource) -> WordArray:
        """Add up this party's rows for an update and return ring elements (n_words,)."""
        densities = Densities.of(self.shape, components)

        def sum_batch(block: tuple[slice, FloatArray]) -> FloatArray:
            return densities.compute_sums(
                *self.columns.split_rows(block[1], self.scale)
            )

        total = np.zeros(self.shape.n_words)
        for sums in self.context.engine.map(
            sum_batch, iterate_batches(data, self.shape.k)
        ):
            total += sums
        return self.shape.encoding(components, self.scale, self.n_rows).encode(total)

    def encode_closing_sums(
        self, components: messages.Components, data: DataSource
    ) -> tuple[WordArray, messages.FinalRows]:
        """Return this party's closing sums as ring elements, and its memberships."""
        densities = Densities.of(self.shape, components)
        U, log, entropy = np.empty((data.n_rows, self.shape.k)), 0.0, 0.0
        for rows, R, log_densities in densities.iter_memberships(data, self.scale):
            U[rows] = R.T
            clipped = np.clip(log_densities, -em.LARGEST_LOG, em.LARGEST_LOG)
            log += float(clipped.sum())
            entropy -= float((R * np.log(np.where(R > 0, R, 1.0))).sum())
        labels = U.argmax(axis=1).astype(np.int64)
        sizes = np.bincount(labels, minlength=self.shape.k)
        sums = np.append(sizes, [log, entropy])
        vector = np.pad(sums, (0, self.shape.n_words - len(sums)))
        words = Closing.encoding(self.shape, self.n_rows).encode(vector)
        return words, messages.FinalRows(labels=labels, memberships=np.minimum(U, 1.0))


def _masked_sum(context: MixtureContext, components: messages.Components) -> MaskedSum:
    name = "closing" if components.closing else "update"
    return MaskedSum(
        members=tuple(context.session.slots),
        name=f"{name}/{components.number}",
        transcript=components.transcript,
    )


class MixtureParty(PartyRole[Mixture, _Task, Record, messages.Agreed]):
    """Moves the components according to the totals, and contributes to the next sums."""

    def reply(self, context: MixtureContext, task: _Task, data: DataSource) -> Reply:
        """Contribute to an update, or report the digest of the result."""
        view = RoundView(context)
        before, asks = context.memory.get(messages.Components), ""
        if isinstance(task, messages.ReportDigest):
            return _report_digest(view, task)
        if before is None:
            task.require({"before": 0})
            check_ranges(context, data)
            components = view.initial_components()
            place = _DensestComponent(view.shape, components, view.scale)
            asks = ask_about_given_start(context, lambda: place(data).labels)
        elif before.closing:
            raise ProtocolFailed("The analyst asks for an update after the last.")
        else:
            task.require({"before": view.shape.n_words + 1})
            components = view.apply_total(before, task.total)
        number = components.number + 1
        if task.number != number:
            raise ProtocolFailed("The analyst asks for an update out of order.")
        remember: list[Record] = [bound.audit_sums(context, data)]
        closing = components.converged or number > bound.limit_updates(context.session)
        components = components.model_copy(
            update={
                "number": number,
                "closing": closing,
                "transcript": context.transcript,
            }
        )
        if closing:
            own, rows = view.encode_closing_sums(components, data)
            remember.append(rows)
        else:
            own = view.sum_rows(components, data)
        words = _SUM.mask(context, own, _masked_sum(context, components))
        return Reply(
            contribution=messages.Sums(words=words, last=closing),
            remember=[components.model_copy(update={"own": own}), *remember],
            asks=asks,
        )

    def early_outcome(self, context: MixtureContext) -> Outcome | None:
        """Return the outcome, or None before all parties agree on it."""
        if context.memory.get(messages.FinalSizes) is None:
            return None
        return _build_outcome(RoundView(context))

    def conclude(
        self, context: MixtureContext, result: messages.Agreed, data: DataSource | None
    ) -> Outcome:
        """Return the outcome with labels, memberships, sizes, means and figures."""
        return _build_outcome(RoundView(context))


def _report_digest(view: RoundView, task: messages.ReportDigest) -> Reply:
    """Send the result's digest and, if this party is the leader, the published part."""
    context, shape = view.context, view.shape
    components = context.recall(messages.Components)
    if not components.closing:
        raise ProtocolFailed("The analyst closes before the likelihood has converged.")
    task.require({"w": shape.n_words + 1})
    encoding = Closing.encoding(shape, view.n_rows)
    words = view.read_total(components, task.total, encoding)
    closing = Closing.parse(shape, encoding, words, view.n_rows)
    own = encoding.decode(components.own)[: shape.k]
    if (closing.sizes < own).any():
        raise ProtocolFailed(
            "A total counts fewer rows of a cluster than this party has."
        )
    figures = _compute_figures(shape, components, closing, view.n_rows)
    sizes = closing.sizes.astype(np.int64)
    published = _build_publication(view, components, closing)
    order = order_published_first(
        len(sizes),
        published.clusters,
        published.sizes,
        published.centroids,
        common=_raw_means(view, components),
    )
    leads = context.slot.name == context.session.slots[0]
    if not leads:
        empty = {name: array[:0] for name, array in published.arrays.items()}
        published = published.model_copy(update=empty)
    mark = sha256()
    for name in ("weights", "means", "covariances", "shares"):
        mark.update(np.ascontiguousarray(getattr(components, name)).tobytes())
    mark.update(words.tobytes())
    return Reply(
        contribution=messages.DigestReport(
            **dict(published),
            digest=group_mac(context, "column", "told", mark.digest()),
            figures=figures.round_values() if leads else None,
        ),
        remember=[
            figures,
            messages.FinalSizes(sizes=sizes),
            ClusterOrder(order=order),
        ],
    )


def _compute_figures(
    shape: Shape, components: messages.Components, closing: Closing, n: int
) -> Figures:
    """Compute the figures of a run with log likelihood L and p free parameters.

    AIC = 2p - 2L (Akaike, 1974), BIC = p log n - 2L (Schwarz, 1978), and, with
    responsibilities r, ICL = BIC + 2 Σ -r log r (Biernacki, Celeux and Govaert, 2000).
    """
    log, p = closing.log_likelihood, shape.n_parameters
    bic = p * float(np.log(n)) - 2 * log
    largest = n * float(np.log(shape.k))
    return Figures(
        n_clusters=max(int(np.count_nonzero(closing.sizes)), 1),
        aic=2 * p - 2 * log,
        bic=bic,
        icl=bic + 2 * closing.entropy,
        entropy=min(closing.entropy / largest, 1.0) if largest else 0.0,
        n_iter=components.number - 1,
        converged=components.converged,
    )


def _raw_means(view: RoundView, components: messages.Components) -> FloatArray:
    return view.columns.join_means(
        components.means, components.shares, view.scale, view.high
    )


def _build_publication(
    view: RoundView, components: messages.Components, closing: Closing
) -> messages.PublishedResult:
    params, scale = view.context.session.params, view.scale
    large = np.flatnonzero(closing.sizes >= params.min_cluster_rows).astype(np.int64)
    with_centroid = large if params.publish == "centroids" else large[:0]
    sizes = closing.sizes.astype(np.int64)
    slot = view.context.session.slots[0]
    weights = view.context.session.weights(slot, view.columns.width)
    grid = rounding_steps(sizes[with_centroid], weights / scale.inverse)
    return messages.PublishedResult(
        clusters=large,
        centroids=np.rint(_raw_means(view, components)[with_centroid] / grid) * grid,
        sizes=round_rows(sizes[large]),
        n_updates=components.number - 1,
    )


def _build_outcome(view: RoundView) -> Outcome:
    recall = view.context.recall
    components, rows = recall(messages.Components), recall(messages.FinalRows)
    numbers, width = view.columns.numbers, view.columns.width
    order, weights = recall(ClusterOrder).order, components.weights
    if view.context.session.params.init != "given":
        weights = weights[order]  # the engine reorders everything but the report
    inverse = view.scale.inverse[numbers]
    spread = em.as_matrices(view.shape.kind, components.covariances, len(numbers))
    covariances = np.zeros((view.shape.k, width, width))
    covariances[:, numbers[:, None], numbers] = spread / np.outer(inverse, inverse)
    return Outcome(
        labels=rows.labels,
        cluster_sizes=recall(messages.FinalSizes).sizes,
        centroids=_raw_means(view, components),
        covariances=covariances,
        memberships=rows.memberships,
        predict=_DensestComponent(view.shape, components, view.scale),
        report={
            "n_updates": components.number - 1,
            "converged": components.converged,
            "weights": weights.tolist(),
        },
        figures=(recall(Figures),),
        order=order,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _DensestComponent:
    """Assigns memberships to new rows.

    It is a class, because a closure cannot be pickled.
    """

    shape: Shape
    components: messages.Components
    scale: Scaler

    def __call__(self, data: DataSource) -> Placement:
        check_column_count(data, self.shape.columns.width)
        densities = Densities.of(self.shape, self.components)
        U = np.empty((data.n_rows, self.shape.k))
        for rows, R, _ in densities.iter_memberships(data, self.scale):
            U[rows] = R.T
        return Placement(labels=U.argmax(axis=1).astype(np.int64), memberships=U)
