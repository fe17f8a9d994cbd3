"""The analyst's role: fit the collaboration maps, and cluster in the common space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.algorithms.representatives import (
    RepeatedRows,
    Representatives,
)
from clustering_protocols.algorithms.spectral import spectral_embedding
from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.common.limits import count_graph_rows, fits_in_one_array
from clustering_protocols.contract import AnalystRole, Ask, Finish, Run
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import ArrayRows, RowBlocks, RowSubset
from clustering_protocols.quality.rows import figures_of_clustering
from clustering_protocols.quality.runs import compare_runs
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.statistics import magnitudes

from . import common_space, messages
from .common_space import Cells, CollaborationMap, CommonSpace
from .params import DataCollaboration, DcSession, count_session_anchors


class Collaborator(AnalystRole[DataCollaboration, messages.Projections]):
    """Receives all projections in one round, and returns labels for each row group."""

    def start(self, session: DcSession) -> Ask | Finish:
        """Ask all parties for their projections."""
        r = count_session_anchors(session)
        return Ask.to_everybody(
            session,
            messages.Project(),
            dims={slot: {"n": session.n_rows(slot), "r": r} for slot in session.slots},
        )

    def step(
        self,
        session: DcSession,
        state: Record,
        contributions: Mapping[str, messages.Projections],
    ) -> Ask | Finish:
        """Cluster the projections in the common space, and return all labels."""
        for slot, projections in contributions.items():
            _check_projections(session, slot, projections)
        layout = session.layout
        row_groups = [
            {layout.slot(slot).column: contributions[slot] for slot in group}
            for group in layout.row_groups
        ]
        # One thread: the last bits would depend on how BLAS divides the work among threads.
        with threadpool_limits(1, "blas"):
            widths = session.column_widths
            maps = fit_maps(session.params, row_groups, widths, session.engine)
        X_hat: RowBlocks = CommonSpace.of(row_groups, maps)
        if session.params.algorithm == "kmeans" and fits_in_one_array(*X_hat.shape):
            X_hat = ArrayRows(X_hat.load())  # k-means reads the rows many times
        magnitudes.check_block_magnitudes("The common space", X_hat, session.engine)
        generators, engine = partial(session.generator, "dc"), session.engine
        representatives = draw_representatives(
            session.params, X_hat, generators, engine
        )
        runs = []
        for params in session.runs:
            clustering, rows = cluster_rows(
                params, X_hat, generators, representatives, engine=engine
            )
            figures = figures_of_clustering(X_hat, clustering, engine)
            runs.append(_build_run(session, clustering, rows, maps, figures))
        if session.params.algorithm == "kmeans":
            numbers = [params.n_clusters for params in session.runs]
            runs = compare_runs(session, X_hat, numbers, runs)
        return Finish(runs=runs)


Generators = Callable[[str], np.random.Generator]
"""Returns a generator for ``starts``, ``embedding`` or ``representatives``."""


def draw_representatives(
    params: DataCollaboration,
    X: RowBlocks,
    generators: Generators,
    engine: Engine = ONE_THREAD,
) -> Representatives | None:
    """Return representatives of the rows, or None if each row is to be clustered."""
    n = X.shape[0]
    if not params.samples_rows(n):
        return None
    rng = generators("representatives")
    return Representatives.draw(X, count_graph_rows(n), rng, engine)


def cluster_rows(
    params: DataCollaboration,
    X: RowBlocks,
    generators: Generators,
    representatives: Representatives | None,
    starts: IntArray | None = None,
    engine: Engine = ONE_THREAD,
) -> tuple[Clustering, RowSubset]:
    """Return a clustering of rows X (n, m̂), and the rows (n, dims) that k-means read.

    representatives: if given, these are clustered instead of all rows.
    starts: int64 (n_init, n_clusters); the numbers of the rows that are initial
        centroids, which are drawn at random if None.
    """
    Z = X
    if params.algorithm == "spectral":
        V = X.load() if representatives is None else representatives.V
        rng = generators("embedding")
        Z = ArrayRows(spectral_embedding(V, params.n_clusters, rng))
    if starts is None:
        rng = generators("starts")
        starts = draw_starts(Z, params.n_clusters, params.n_init, rng, engine)
    clustering = kmeans(Z, starts, params.max_iter, engine)
    if representatives is None:
        return clustering, Z
    repeated = RepeatedRows(Z, representatives.nearest)
    return representatives.expand_clustering(clustering), repeated


def fit_maps(
    params: DataCollaboration,
    row_groups: Sequence[Cells],
    widths: Sequence[int],
    engine: Engine = ONE_THREAD,
) -> list[CollaborationMap]:
    """Return the collaboration map g_i of each row group.

    row_groups: for each row group, its projections; some column groups may be absent.
    widths: for each column group, its number of columns m_j.
    """
    if params.target == "orthonormal":
        anchors = [
            [cells[column].anchors for column in sorted(cells)] for cells in row_groups
        ]
        return common_space.orthonormal_maps(anchors, engine)
    maps_by_column: list[dict[int, CollaborationMap]] = [{} for _ in row_groups]
    dims: list[int] = []
    for column, width in enumerate(widths):
        present = [row for row, cells in enumerate(row_groups) if column in cells]
        blocks = [row_groups[row][column].anchors for row in present]
        maps = common_space.isometric_maps(blocks, width, engine)
        dims.append(maps[0].G.shape[1])
        for row, mapping in zip(present, maps, strict=True):
            maps_by_column[row][column] = mapping
    return [common_space.combine_maps(maps, dims) for maps in maps_by_column]


def _check_projections(
    session: DcSession, slot: str, projections: messages.Projections
) -> None:
    """Raise InvalidArray if projections have no column, or more columns than features.

    The record does not fix the number of columns, because each party chooses this
    number, up to that of its features.
    """
    width, n_features = projections.rows.shape[1], session.member(slot).n_columns
    if width == 0:
        raise InvalidArray(f"{slot!r} sent projections of no dimension.")
    if width > n_features:
        raise InvalidArray(
            f"{slot!r} sent projections of {width} dimensions; it has {n_features} "
            "features."
        )
    magnitudes.check_magnitudes(
        f"What {slot!r} sent", projections.rows, projections.anchors
    )


def _build_run(
    session: DcSession,
    clustering: Clustering,
    Z: RowSubset,
    maps: Sequence[CollaborationMap],
    figures: Figures,
) -> Run:
    params, k = session.params, len(clustering.centroids)
    sizes = np.bincount(clustering.labels, minlength=k)
    results: dict[str, Record] = {}
    begin = 0
    for row, n_rows in enumerate(session.row_counts):
        end = begin + n_rows
        labels = clustering.labels[begin:end]
        result = messages.RowGroupLabels(labels=labels, cluster_sizes=sizes)
        if params.output == "coordinates" or params.predictor:
            coordinates_end = end if params.output == "coordinates" else begin
            G, g = np.empty((0, 0)), np.empty(0)
            if params.predictor:
                G, g = maps[row].G, maps[row].g
            result = messages.RowGroupModel(
                labels=labels,
                cluster_sizes=sizes,
                coordinates=Z.take(np.arange(begin, coordinates_end)),
                centroids=clustering.centroids,
                map_matrix=G,
                map_offset=g,
            )
        results |= dict.fromkeys(session.layout.row_group(row), result)
        begin = end
    summary = messages.Summary(
        cluster_sizes=sizes,
        starts=clustering.starts,
        inertia=clustering.inertia,
        n_dimensions=Z.shape[1],
    )
    return Run(results=results, summary=summary, figures=figures)
