"""The analyst: answers in, distances decoded block by block, labels per party out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import pdist

from clustering_protocols.algorithms.condensed_distances import n_rows, square
from clustering_protocols.algorithms.dbscan import (
    dbscan,
    dbscan_of_rows,
    hdbscan,
    knee,
    knee_of_rows,
)
from clustering_protocols.algorithms.embedding import classical_scaling
from clustering_protocols.algorithms.fuzzy_cmeans import fuzzy_cmeans
from clustering_protocols.algorithms.hierarchical import hierarchical
from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.algorithms.kmedoids import draw_medoids, kmedoids
from clustering_protocols.algorithms.neighbors import DistanceNeighbors
from clustering_protocols.algorithms.nmf import nmf
from clustering_protocols.algorithms.representatives import Representatives
from clustering_protocols.algorithms.spectral import embed_neighbors, spectral_embedding
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.common.limits import graph_rows
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen, Run
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.quality.rows import of_rows
from clustering_protocols.quality.runs import across
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy import field as field_words

from . import limits, maths, messages
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
        """Return the squared distances of some pairs, 2^{-2q} D̃ (eq. 6).

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
        kept = {answer.bits for answer in contributions.values()}
        if len(kept) != 1:
            raise ProtocolFailed(
                f"The parties kept different numbers of binary digits: {sorted(kept)}."
            )
        (bits,) = kept
        distances = {s: answer.distances for s, answer in contributions.items()}
        X, squared = _rows(session, distances, bits)
        seen = build_clustering_input(params, squared, X)
        silhouette = limits.measures_silhouette(params)
        runs = []
        for params in session.runs:
            found = clusters(
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
        return maths.rows_from_landmarks(decoder.read, n, d), None
    squared = decoder.read(slice(_pairs(session)))
    return classical_scaling(squared, d), squared


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
    for slot, size in zip(session.slots, session.row_counts, strict=True):
        rows = slice(begin, begin + size)
        results[slot] = _result(found, rows, sizes)
        begin += size
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


_WITHIN = 1 + 1e-6
"""A distance that equals eps but for quantisation and rounding counts as within it."""

Generators = Callable[[str], np.random.Generator]
"""Gives the generator of ``starts``, ``embedding``, ``factor`` or ``representatives``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterLabels:
    """Labels (n,), and what else an algorithm leaves.

    starts: int64 (n_init, n_clusters); row numbers; empty where the algorithm takes
        none.
    memberships: float64 (n, n_clusters).
    n_coinciding: how many clusters of fuzzy_cmeans equal one of a lower number, else 0.
    eps: of dbscan, else 0.
    n_iter, converged: of kmeans.
    """

    labels: IntArray = field(repr=False)
    starts: IntArray = field(
        default_factory=lambda: np.empty((0, 0), dtype=np.int64), repr=False
    )
    memberships: FloatArray | None = field(default=None, repr=False)
    n_coinciding: int = 0
    eps: float = 0.0
    n_iter: int | None = None
    converged: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringInput:
    """What an algorithm sees, the same for any number of clusters: one of the two.

    rows: float64 (n, width).
    distances: float64 (n (n - 1) / 2,); condensed.
    """

    rows: FloatArray | None = field(default=None, repr=False)
    distances: FloatArray | None = field(default=None, repr=False)


def build_clustering_input(
    params: OmniFC, squared: FloatArray | None, X: FloatArray
) -> ClusteringInput:
    """Return what an algorithm sees of distances.

    squared: float64 (n (n - 1) / 2,); condensed squared distances; overwritten where
        distances are seen. Computed from the rows where they are needed and not given.
    X: float64 (n, width); rows of these distances.
    """
    clusters_of_rows = params.algorithm in {"kmeans", "fuzzy_cmeans", "hdbscan"}
    in_linear_size = clusters_of_rows or params.algorithm in {"spectral", "dbscan"}
    if params.features == "embedding" and (
        clusters_of_rows or (params.distances == "landmarks" and in_linear_size)
    ):
        return ClusteringInput(rows=X)
    if squared is None:
        squared = pdist(X, "sqeuclidean")
    distances = np.sqrt(squared, out=squared)
    if params.features == "distance_rows":
        rows = square(distances)
        if clusters_of_rows or params.algorithm == "nmf":
            return ClusteringInput(rows=rows)
        distances = pdist(rows)
    return ClusteringInput(distances=distances)


def clusters(
    params: OmniFC,
    given: ClusteringInput,
    generators: Generators,
    starts: IntArray | None = None,
    engine: Engine = ONE_THREAD,
) -> ClusterLabels:
    """Return clusters of what is seen.

    starts: int64 (n_init, n_clusters); instead of drawn ones.
    engine: works on blocks of many rows.
    """
    if given.rows is not None:
        if params.algorithm in {"dbscan", "hdbscan"}:
            return _of_density(params, given.rows)
        return clusters_of_rows(params, given.rows, generators, starts, engine)
    distances = given.distances
    if distances is None:
        raise ValueError("neither rows nor distances are seen")
    if params.algorithm == "spectral":
        return _spectral(params, distances, generators, starts)
    if params.algorithm == "dbscan":
        eps = params.eps or knee(distances, params.min_samples)
        labels = dbscan(distances, eps * _WITHIN, params.min_samples)
        return ClusterLabels(labels=labels, eps=eps)
    if params.algorithm == "hierarchical":
        return ClusterLabels(labels=hierarchical(distances, params.k, params.linkage))
    return _kmedoids(params, distances, generators, starts)


def clusters_of_rows(
    params: OmniFC,
    X: FloatArray,
    generators: Generators,
    starts: IntArray | None,
    engine: Engine = ONE_THREAD,
) -> ClusterLabels:
    """Return clusters by kmeans, fuzzy_cmeans, spectral or nmf of rows X (n, width).

    nmf is k-means of the rows of W, where X ≈ W H. spectral of many rows is that of some
    which stand for all.
    """
    some = None
    if params.samples_rows(len(X)):  # drawn here, among which no given start is
        given, rng = ArrayRows(X), generators("representatives")
        some = Representatives.draw(given, graph_rows(len(X)), rng, engine)
        X, starts = some.V, None
    if params.algorithm == "spectral":
        X = spectral_embedding(X, params.k, generators("embedding"))
    if params.algorithm == "nmf":
        seed = int(generators("factor").integers(2**31))
        X = nmf(X, params.k, params.max_iter, seed)
    if starts is None:
        starts = draw_starts(X, params.k, params.n_init, generators("starts"), engine)
    if params.algorithm == "fuzzy_cmeans":
        fuzzy = fuzzy_cmeans(X, starts, params.exponent, params.max_iter)
        return ClusterLabels(
            labels=fuzzy.labels,
            starts=starts,
            memberships=fuzzy.memberships,
            n_coinciding=fuzzy.n_coinciding,
        )
    found = kmeans(X, starts, params.max_iter, engine)
    return _of_kmeans(found if some is None else some.spread(found))


def _of_density(params: OmniFC, X: FloatArray) -> ClusterLabels:
    if params.algorithm == "hdbscan":
        return ClusterLabels(
            labels=hdbscan(X, params.min_cluster_size, params.min_samples)
        )
    eps = params.eps or knee_of_rows(X, params.min_samples)
    labels = dbscan_of_rows(
        X, eps * _WITHIN, params.min_samples, limits.neighbor_pairs(params, *X.shape)
    )
    return ClusterLabels(labels=labels, eps=eps)


def _of_kmeans(found: Clustering) -> ClusterLabels:
    return ClusterLabels(
        labels=found.labels,
        starts=found.starts,
        n_iter=found.n_iter,
        converged=found.converged,
    )


def _spectral(
    params: OmniFC,
    distances: FloatArray,
    generators: Generators,
    starts: IntArray | None,
) -> ClusterLabels:
    neighbors, n = DistanceNeighbors(distances), n_rows(distances)
    Z = embed_neighbors(neighbors, n, params.k, generators("embedding"))
    if starts is None:
        starts = draw_starts(Z, params.k, params.n_init, generators("starts"))
    return _of_kmeans(kmeans(Z, starts, params.max_iter))


def _kmedoids(
    params: OmniFC,
    distances: FloatArray,
    generators: Generators,
    starts: IntArray | None,
) -> ClusterLabels:
    n = n_rows(distances)
    if starts is None:
        starts = draw_medoids(n, params.k, params.n_init, generators("starts"))
    found = kmedoids(distances, starts, params.max_iter)
    return ClusterLabels(labels=found.labels, starts=starts)
