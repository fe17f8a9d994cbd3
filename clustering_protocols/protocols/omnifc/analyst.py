"""The analyst's role: decode distances block by block, and cluster the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.spatial.distance import pdist, squareform

from clustering_protocols.algorithms.condensed_distances import count_rows
from clustering_protocols.algorithms.dbscan import choose_eps, dbscan, hdbscan
from clustering_protocols.algorithms.embedding import classical_scaling
from clustering_protocols.algorithms.fuzzy_cmeans import fuzzy_cmeans
from clustering_protocols.algorithms.hierarchical import cluster_hierarchically
from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.algorithms.kmedoids import draw_medoids, kmedoids
from clustering_protocols.algorithms.neighbors import DistanceNeighbors
from clustering_protocols.algorithms.nmf import nmf
from clustering_protocols.algorithms.representatives import Representatives
from clustering_protocols.algorithms.spectral import embed_neighbors, spectral_embedding
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.common.limits import count_graph_rows
from clustering_protocols.contract import AnalystRole, Ask, Finish, Run, agreed
from clustering_protocols.contract.sizing import WORD
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import ArrayRows, iterate_slices
from clustering_protocols.quality.rows import figures_of_rows
from clustering_protocols.quality.runs import compare_runs
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy import field as field_words

from . import limits, maths, messages
from .params import OmniFC, OmniSession

Answers = Mapping[str, WordArray]
"""The answers by slot, in slot order; memory maps of files, which are read once."""


class DistanceDecoder:
    """Decodes the squared distances of rows from the parties' answers.

    slots: all slots, in the order of their share points.
    answers: for each slot that answered, uint64 (pairs,). If ``hide_segments`` is set,
        all slots must answer, otherwise at least 2 l + 2 t - 1.
    bits: q, the number of binary digits after the point of a quantised value.

    Raises ProtocolFailed if there are too few answers.
    """

    def __init__(
        self, params: OmniFC, slots: Sequence[str], answers: Answers, bits: int
    ) -> None:
        self.params, self.slots, self.answers, self.bits = params, slots, answers, bits
        order = [slot for slot in slots if slot in answers]
        self._parts = [answers[slot] for slot in order]
        # parties that hide segments have already weighted their answers
        self._weights: list[int] = [1] * len(order)
        self._checks: maths.Matrix = []
        if params.hide_segments:
            return
        n_values = params.needed_answers
        if len(order) < n_values:
            raise ProtocolFailed(
                f"{len(order)} parties answered; {n_values} are needed."
            )
        share_points = maths.share_points(len(slots))
        points = [share_points[slots.index(slot)] for slot in order]
        self._weights = maths.build_decoding_weights(params.segments, points[:n_values])
        self._checks = maths.build_checks(points, n_values)

    def read(self, pairs: slice) -> FloatArray:
        """Return the squared distances 2^{-2q} D̃ (eq. 6) of a slice of pairs.

        Raises ProtocolFailed if there are more answers than needed, and they contradict
        each other in this slice.
        """
        parts = [part[pairs] for part in self._parts]
        squared = np.empty(len(parts[0]))
        scratch: WordArray = np.empty(field_words.BLOCK, dtype=np.uint64)
        for rows in iterate_slices(len(squared), field_words.BLOCK):
            pieces = [part[rows] for part in parts]
            total = scratch[: len(pieces[0])]
            if not self._are_consistent(pieces, total):
                raise self._build_contradiction()
            total.fill(0)
            maths.add_combination(total, self._weights, pieces[: len(self._weights)])
            field_words.write_as_real(total, 2.0 ** (-2 * self.bits), squared[rows])
        return squared

    def _are_consistent(self, pieces: Sequence[WordArray], total: WordArray) -> bool:
        """Return whether all checks give zero; the contents of total are overwritten."""
        for weights in self._checks:
            total.fill(0)
            maths.add_combination(total, weights, pieces)
            field_words.canonicalise(total)
            if total.any():
                return False
        return True

    def _build_contradiction(self) -> ProtocolFailed:
        """Return the error for contradictory answers, naming the party if possible.

        A party is named if the other answers agree without its own. This needs two more
        answers than decoding does.
        """
        n_values = self.params.needed_answers
        text = "The answers contradict each other: at least one is corrupt."
        if len(self.answers) < n_values + 2:
            return ProtocolFailed(f"{text} {n_values + 2} answers would show whose.")
        suspects = [slot for slot in self.answers if self._agree_without(slot)]
        if len(suspects) != 1:
            return ProtocolFailed(f"{text} More than one may be corrupt.")
        return ProtocolFailed(f"{text} The others agree without {suspects[0]!r}.")

    def _agree_without(self, suspect: str) -> bool:
        answers = {
            slot: words for slot, words in self.answers.items() if slot != suspect
        }
        others = DistanceDecoder(self.params, self.slots, answers, self.bits)
        scratch: WordArray = np.empty(len(others._parts[0]), dtype=np.uint64)
        return all(
            others._are_consistent([part[rows] for part in others._parts], block)
            for rows, block in maths.blocks(scratch)
        )


class Decoder(AnalystRole[OmniFC, messages.EncodedDistances]):
    """Receives answers in a single round, and returns labels."""

    def start(self, session: OmniSession) -> Ask | Finish:
        """Ask all parties for the distances between the shares that they hold."""
        params = session.params
        n, d = limits.size_of(session)
        pairs = limits.answer_pairs(params, n, d)
        return Ask.to_everybody(
            session,
            messages.Compare(),
            dims={slot: {"pairs": pairs} for slot in session.slots},
            quorum=None if params.hide_segments else params.needed_answers,
        )

    def step(
        self,
        session: OmniSession,
        state: Record,
        contributions: Mapping[str, messages.EncodedDistances],
    ) -> Ask | Finish:
        """Decode the distances, cluster the rows, and return the labels of all rows."""
        params = session.params
        bits = agreed(contributions, "bits", "the number of binary digits")
        answers = {slot: record.distances for slot, record in contributions.items()}
        n, d = limits.size_of(session)
        decoder = DistanceDecoder(params, session.slots, answers, bits)
        if params.distances == "landmarks":
            X, squared = maths.rows_from_landmarks(decoder.read, n, d), None
        else:
            squared = decoder.read(slice(limits.answer_pairs(params, n, d)))
            X = classical_scaling(squared, d)
        clustering_input = build_clustering_input(params, squared, X)
        silhouette = limits.measures_silhouette(params)
        generators = partial(session.generator, "omnifc")
        runs = []
        for params in session.runs:
            result = compute_clusters(
                params, clustering_input, generators, engine=session.engine
            )
            figures = figures_of(X, result, silhouette=silhouette)
            runs.append(_build_run(session, params, result, figures, bits))
        if params.algorithm == "kmeans" and params.features == "embedding":
            runs = compare_runs(session, X, [params.k for params in session.runs], runs)
        return Finish(runs=runs)


def figures_of(
    X: FloatArray, result: ClusterLabels, *, silhouette: bool = True
) -> Figures | None:
    """Return quality figures of clusters of X (n, width); None if all rows are noise."""
    if not (result.labels >= 0).any():
        return None
    return figures_of_rows(
        X,
        result.labels,
        memberships=result.memberships,
        silhouette=silhouette,
        n_iter=result.n_iter,
        converged=result.converged,
    )


def _build_run(
    session: OmniSession,
    params: OmniFC,
    result: ClusterLabels,
    figures: Figures | None,
    bits: int,
) -> Run:
    labels, memberships = result.labels, result.memberships
    k = params.n_clusters or int(labels.max(initial=-1)) + 1
    clustered = labels[labels >= 0]
    sizes = np.bincount(clustered, minlength=k)
    results: dict[str, Record] = {}
    begin = 0
    for slot, size in zip(session.slots, session.row_counts, strict=True):
        rows = slice(begin, begin + size)
        begin += size
        if memberships is None:
            results[slot] = messages.RowGroupLabels(
                labels=labels[rows], cluster_sizes=sizes
            )
        else:
            results[slot] = messages.RowGroupMemberships(
                labels=labels[rows],
                cluster_sizes=sizes,
                memberships=memberships[rows],
                n_coinciding=result.n_coinciding,
            )
    summary = messages.Summary(
        cluster_sizes=sizes,
        starts=result.starts,
        noise_rows=len(labels) - len(clustered),
        bits=bits,
        eps=result.eps,
        n_coinciding=result.n_coinciding,
    )
    return Run(results=results, summary=summary, figures=figures)


_EPS_SLACK = 1 + 1e-6
"""A distance that equals eps except for quantisation and rounding counts as within it."""

Generators = Callable[[str], np.random.Generator]
"""Returns a generator for ``starts``, ``embedding``, ``factor`` or ``representatives``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterLabels:
    """The labels (n,) that an algorithm returns, and its other results.

    starts: int64 (n_init, n_clusters); the numbers of the rows that were initial
        centroids; empty if the algorithm has no starts.
    memberships: float64 (n, n_clusters); only of fuzzy_cmeans.
    n_coinciding: number of clusters of fuzzy_cmeans that equal a lower-numbered one; 0
        for other algorithms.
    eps: the value that dbscan used; 0 for other algorithms.
    n_iter, converged: only of kmeans.
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


def build_clustering_input(
    params: OmniFC, squared: FloatArray | None, X: FloatArray
) -> FloatArray:
    """Return the algorithm's input: rows (n, width), or condensed distances.

    squared: float64 (n (n - 1) / 2,); condensed squared distances, which are
        overwritten if the algorithm takes distances. If ``squared`` is None, distances
        are computed from X where needed.
    X: float64 (n, width); rows with these distances.
    """
    takes_rows = params.algorithm in {"kmeans", "fuzzy_cmeans", "dbscan", "hdbscan"}
    can_take_rows = takes_rows or params.algorithm == "spectral"
    if params.features == "embedding" and (
        takes_rows or (params.distances == "landmarks" and can_take_rows)
    ):
        return X
    if squared is None:
        squared = pdist(X, "sqeuclidean")
    distances = np.sqrt(squared, out=squared)
    if params.features == "distance_rows":
        rows: FloatArray = squareform(distances)
        if takes_rows or params.algorithm == "nmf":
            return rows
        distances = pdist(rows)
    return distances


def compute_clusters(
    params: OmniFC,
    clustering_input: FloatArray,
    generators: Generators,
    starts: IntArray | None = None,
    engine: Engine = ONE_THREAD,
) -> ClusterLabels:
    """Cluster rows (n, width), or points that are given by condensed distances.

    starts: int64 (n_init, n_clusters); the numbers of the rows that are initial
        centroids, which are drawn at random if None.
    engine: computes on blocks of rows if there are many rows.
    """
    if clustering_input.ndim == 2:
        X = clustering_input
        if params.algorithm in {"dbscan", "hdbscan"}:
            return _density_clusters(params, X)
        return clusters_of_rows(params, X, generators, starts, engine)
    distances = clustering_input
    n = count_rows(distances)
    if params.algorithm == "hierarchical":
        return ClusterLabels(
            labels=cluster_hierarchically(distances, params.k, params.linkage)
        )
    if params.algorithm == "spectral":
        neighbors, rng = DistanceNeighbors(distances), generators("embedding")
        Z = embed_neighbors(neighbors, n, params.k, rng)
        if starts is None:
            starts = draw_starts(Z, params.k, params.n_init, generators("starts"))
        return _labels_of_kmeans(kmeans(Z, starts, params.max_iter))
    if starts is None:
        starts = draw_medoids(n, params.k, params.n_init, generators("starts"))
    medoids = kmedoids(distances, starts, params.max_iter)
    return ClusterLabels(labels=medoids.labels, starts=starts)


def clusters_of_rows(
    params: OmniFC,
    X: FloatArray,
    generators: Generators,
    starts: IntArray | None,
    engine: Engine = ONE_THREAD,
) -> ClusterLabels:
    """Cluster rows X (n, width) by kmeans, fuzzy_cmeans, spectral or nmf.

    nmf is k-means on the rows of W, where X ≈ W H. If there are many rows, spectral
    clusters representatives of them.
    """
    representatives = None
    if params.samples_rows(len(X)):
        # the given starts may not be among the representatives
        rows, rng = ArrayRows(X), generators("representatives")
        representatives = Representatives.draw(
            rows, count_graph_rows(len(X)), rng, engine
        )
        X, starts = representatives.V, None
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
    clustering = kmeans(X, starts, params.max_iter, engine)
    if representatives is not None:
        clustering = representatives.expand_clustering(clustering)
    return _labels_of_kmeans(clustering)


def _density_clusters(params: OmniFC, X: FloatArray) -> ClusterLabels:
    if params.algorithm == "hdbscan":
        labels = hdbscan(X, params.min_cluster_size, params.min_samples)
        return ClusterLabels(labels=labels)
    eps = params.eps or choose_eps(X, params.min_samples)
    # scikit-learn needs two words of memory for each pair of neighbours
    used = limits.analyst_bytes(params, *X.shape)
    memory = max(0, params.memory_limit - used)
    most_pairs = memory // (2 * WORD)
    labels = dbscan(X, eps * _EPS_SLACK, params.min_samples, most_pairs)
    return ClusterLabels(labels=labels, eps=eps)


def _labels_of_kmeans(clustering: Clustering) -> ClusterLabels:
    return ClusterLabels(
        labels=clustering.labels,
        starts=clustering.starts,
        n_iter=clustering.n_iter,
        converged=clustering.converged,
    )
