"""The analyst: answers in, distances decoded block by block, labels per party out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.algorithms.embedding import classical_scaling
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen, Run
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.rows import of_rows
from clustering_protocols.quality.runs import across
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy import field as field_words

from . import clustering, landmarks, limits, maths, messages
from .clustering import ClusterLabels
from .params import OmniFC, OmniSession

Answers = Mapping[str, WordArray]
"""The answers by slot, in slot order; mapped files, which are read once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistanceDecoder:
    """Reads squared distances out of answers, some pairs at a time.

    slots: all slots: their order says which share point is whose.
    answers: mapping of slot to uint64 (pairs,); of all slots with ``hide_segments``,
        else of at least 2 l + 2 t - 1.
    bits: q.
    weights, checks, order: of the first answers, of all, and whose they are.
    """

    params: OmniFC
    slots: Sequence[str]
    answers: Answers = field(repr=False)
    bits: int
    weights: Sequence[int] = field(repr=False)
    checks: maths.Matrix = field(repr=False)
    order: Sequence[str]

    @classmethod
    def of(
        cls, params: OmniFC, slots: Sequence[str], answers: Answers, bits: int
    ) -> DistanceDecoder:
        """Return what reads these answers; :class:`ProtocolFailed` of too few."""
        weights, checks, order = _weights(params, slots, answers)
        return cls(
            params=params,
            slots=slots,
            answers=answers,
            bits=bits,
            weights=weights,
            checks=checks,
            order=order,
        )

    def read(self, pairs: slice) -> FloatArray:
        """Return the squared distances of some pairs, 2^{-2q} D̃.

        Raises ProtocolFailed if there are more answers than needed and they contradict
            each other here.
        """
        parts = [self.answers[slot][pairs] for slot in self.order]
        squared = np.empty(len(parts[0]))
        scratch: WordArray = np.empty(field_words.BLOCK, dtype=np.uint64)
        for begin in range(0, len(squared), field_words.BLOCK):
            rows = slice(begin, begin + field_words.BLOCK)
            pieces = [part[rows] for part in parts]
            total = scratch[: len(pieces[0])]
            if not _consistent(self.checks, pieces, total):
                raise _contradiction(self.params, self.slots, self.answers)
            total.fill(0)
            maths.add_combination(total, self.weights, pieces[: len(self.weights)])
            field_words.to_real(total, 2.0 ** (-2 * self.bits), squared[rows])
        return squared


def _consistent(
    checks: maths.Matrix, pieces: Sequence[WordArray], total: WordArray
) -> bool:
    """Return whether all checks give zero; total is overwritten."""
    for weights in checks:
        total.fill(0)
        maths.add_combination(total, weights, pieces)
        field_words.settle(total)
        if total.any():
            return False
    return True


def _weights(
    params: OmniFC, slots: Sequence[str], answers: Answers
) -> tuple[list[int], maths.Matrix, list[str]]:
    """Return decoding weights of the first answers, checks of all, and their order."""
    order = [slot for slot in slots if slot in answers]
    if params.hide_segments:  # the parties have weighted their answers
        return [1] * len(order), [], order
    needed = maths.count_needed_values(params.segments, params.noise)
    if len(order) < needed:
        raise ProtocolFailed(f"{len(order)} answers came; {needed} are needed.")
    of_all = maths.share_points(len(slots))
    points = [of_all[slots.index(slot)] for slot in order]
    weights = maths.build_decoding_weights(params.segments, points[:needed])
    return weights, maths.checks(points, needed), order


def _contradiction(
    params: OmniFC, slots: Sequence[str], answers: Answers
) -> ProtocolFailed:
    """Return the error, with the party whose answer alone explains it.

    Left out, the others agree; that takes two answers more than needed.
    """
    needed = maths.count_needed_values(params.segments, params.noise)
    text = "The answers contradict each other: at least one is corrupt."
    if len(answers) < needed + 2:
        return ProtocolFailed(f"{text} {needed + 2} answers would show whose.")
    suspects = [
        slot for slot in answers if _agree(params, slots, answers, without=slot)
    ]
    if len(suspects) != 1:
        return ProtocolFailed(f"{text} It is not one alone.")
    return ProtocolFailed(f"{text} The others agree without {suspects[0]!r}.")


def _agree(
    params: OmniFC, slots: Sequence[str], answers: Answers, without: str
) -> bool:
    others = {slot: answer for slot, answer in answers.items() if slot != without}
    _, checks, order = _weights(params, slots, others)
    parts = [others[slot] for slot in order]
    scratch: WordArray = np.empty(len(parts[0]), dtype=np.uint64)
    return all(
        _consistent(checks, [part[rows] for part in parts], block)
        for rows, block in maths.blocks(scratch)
    )


class Decoder(AnalystRole[OmniFC, messages.EncodedDistances]):
    """One round: answers in, labels out."""

    def start(self, session: OmniSession) -> Ask | Finish:
        """Ask everybody for the distances between its shares."""
        params = session.params
        pairs = _pairs(session)
        enough = maths.count_needed_values(params.segments, params.noise)
        return Ask.everybody(
            session,
            messages.Compare(),
            dims={slot: {"pairs": pairs} for slot in session.slots},
            quorum=None if params.hide_segments else enough,
        )

    def step(
        self,
        session: OmniSession,
        state: Record,
        contributions: Mapping[str, messages.EncodedDistances],
    ) -> Ask | Reopen | Finish:
        """Return the labels of all parties' rows."""
        params = session.params
        bits = _common_bits(contributions)
        distances = {s: answer.distances for s, answer in contributions.items()}
        X, squared = _rows(session, distances, bits)
        seen = clustering.build_clustering_input(params, squared, X)
        silhouette = limits.measures_silhouette(params)
        runs = []
        for params in session.runs:
            found = clustering.clusters(
                *(params, seen, lambda use: session.generator("omnifc", use)),
                engine=session.engine,
            )
            figures = figures_of(X, found, silhouette=silhouette)
            runs.append(_run(session, params, found, figures, bits))
        if params.algorithm == "kmeans" and params.features == "embedding":
            runs = across(session, X, [each.k for each in session.runs], runs)
        return Finish(runs=runs)


def _pairs(session: OmniSession) -> int:
    n, d = limits.n_rows(session), limits.n_features(session)
    return limits.answer_pairs(session.params, n, d)


def _rows(
    session: OmniSession, distances: Answers, bits: int
) -> tuple[FloatArray, FloatArray | None]:
    """Return the rows as they were shared out, but for a motion; and D where it came."""
    params = session.params
    n, d = limits.n_rows(session), limits.n_features(session)
    decoder = DistanceDecoder.of(params, session.slots, distances, bits)
    if params.distances == "landmarks":
        return landmarks.coordinates(decoder.read, n, d), None
    squared = decoder.read(slice(_pairs(session)))
    return classical_scaling(squared, d), squared


def _common_bits(answers: Mapping[str, messages.EncodedDistances]) -> int:
    found = {answer.bits for answer in answers.values()}
    if len(found) != 1:
        raise ProtocolFailed(
            f"The parties kept different numbers of binary digits: {sorted(found)}."
        )
    return found.pop()


def figures_of(
    X: FloatArray, found: ClusterLabels, *, silhouette: bool = True
) -> Figures | None:
    """Return what the clusters are like; nothing where all rows are noise."""
    if not (found.labels >= 0).any():
        return None
    return of_rows(
        X,
        found.labels,
        memberships=found.memberships,
        silhouette=silhouette,
        n_iter=found.n_iter,
        converged=found.converged,
    )


def _run(
    session: OmniSession,
    params: OmniFC,
    found: ClusterLabels,
    figures: Figures | None,
    bits: int,
) -> Run:
    k = params.n_clusters or int(found.labels.max(initial=-1)) + 1
    inside = found.labels[found.labels >= 0]
    sizes = np.bincount(inside, minlength=k)
    results: dict[str, Record] = {}
    begin = 0
    for slot, n_rows in zip(session.slots, session.row_counts, strict=True):
        rows = slice(begin, begin + n_rows)
        results[slot] = _result(found, rows, sizes)
        begin += n_rows
    summary = messages.Summary(
        cluster_sizes=sizes,
        starts=found.starts,
        noise_rows=len(found.labels) - len(inside),
        bits=bits,
        eps=found.eps,
        n_coinciding=found.n_coinciding,
    )
    return Run(results=results, summary=summary, figures=figures)


def _result(found: ClusterLabels, rows: slice, sizes: IntArray) -> Record:
    labels = found.labels[rows]
    if found.memberships is None:
        return messages.RowGroupLabels(labels=labels, cluster_sizes=sizes)
    return messages.RowGroupMemberships(
        labels=labels,
        cluster_sizes=sizes,
        memberships=found.memberships[rows],
        n_coinciding=found.n_coinciding,
    )
