"""The analyst role: collaboration maps from the anchors, clustering in a common space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.algorithms.representatives import Representatives
from clustering_protocols.algorithms.spectral import spectral_embedding
from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.common.limits import graph_rows
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen, Run
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import ArrayRows, RowBlocks, RowSubset
from clustering_protocols.quality.around_means import of_clustering
from clustering_protocols.quality.runs import across
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.statistics import magnitudes

from . import anchors, common_space, messages
from .common_space import Cells, CollaborationMap, CommonSpace
from .params import DataCollaboration, DcSession


class Collaborator(AnalystRole[DataCollaboration, messages.Projections]):
    """One round: projections in, labels per row group out."""

    def start(self, session: DcSession) -> Ask | Finish:
        """Ask everybody for projections."""
        r = anchors.n_anchors_of(session)
        return Ask.everybody(
            session,
            messages.Project(),
            dims={slot: {"n": session.n_rows(slot), "r": r} for slot in session.slots},
        )

    def step(
        self,
        session: DcSession,
        state: Record,
        contributions: Mapping[str, messages.Projections],
    ) -> Ask | Reopen | Finish:
        """Return the labels of all row groups."""
        row_groups = _row_groups(session, contributions)
        # one thread per product and factor: how BLAS shares them out shows in last bits
        with threadpool_limits(1, "blas"):
            widths = session.column_widths
            maps = fit_maps(session.params, row_groups, widths, session.engine)
        X_hat: RowBlocks = CommonSpace.of(row_groups, maps)
        magnitudes.check_blocks("The common space", X_hat, session.engine)
        if session.params.algorithm == "kmeans":  # its passes are many
            X_hat = row_blocks.load_if_small(X_hat)
        some = _representatives(session, X_hat)
        runs = [_run(session, params, X_hat, some, maps) for params in session.runs]
        if session.params.algorithm == "kmeans":
            numbers = [params.n_clusters for params in session.runs]
            runs = across(session, X_hat, numbers, runs)
        return Finish(runs=runs)


def _representatives(session: DcSession, X_hat: RowBlocks) -> Representatives | None:
    """Return the rows that are clustered for all; None where all are."""
    n = X_hat.shape[0]
    if not session.params.samples_rows(n):
        return None
    rng = session.generator("dc", "representatives")
    return Representatives.draw(X_hat, graph_rows(n), rng, session.engine)


def _run(
    session: DcSession,
    params: DataCollaboration,
    X_hat: RowBlocks,
    some: Representatives | None,
    maps: Sequence[CollaborationMap],
) -> Run:
    """Return what one number of clusters gives in the common space X̂ (n, m̂)."""
    Z: RowBlocks = X_hat
    if params.algorithm == "spectral":
        rng = session.generator("dc", "embedding")
        X = row_blocks.whole(X_hat) if some is None else some.V
        Z = ArrayRows(spectral_embedding(X, params.n_clusters, rng))
    rng, engine = session.generator("dc", "starts"), session.engine
    starts = draw_starts(Z, params.n_clusters, params.n_init, rng, engine)
    found = kmeans(Z, starts, params.max_iter, engine)
    of_all: RowSubset = Z
    if some is not None:
        found, of_all = some.spread(found), some.repeat(Z)
    figures = of_clustering(X_hat, found, engine)
    return _build_run(session, found, of_all, maps, figures)


def fit_maps(
    params: DataCollaboration,
    row_groups: Sequence[Cells],
    widths: Sequence[int],
    engine: Engine = ONE_THREAD,
) -> list[CollaborationMap]:
    """Return g_i of each row group.

    row_groups: a row group may lack column groups.
    widths: m_j of each column group.
    """
    affine = params.map == "affine"
    if params.target == "orthonormal":
        anchors = [
            [cells[column].anchors for column in sorted(cells)] for cells in row_groups
        ]
        return common_space.orthonormal_maps(anchors, affine=affine, engine=engine)
    found: list[dict[int, CollaborationMap]] = [{} for _ in row_groups]
    dims: list[int] = []
    for column, width in enumerate(widths):
        present = [row for row, cells in enumerate(row_groups) if column in cells]
        blocks = [row_groups[row][column].anchors for row in present]
        maps = common_space.isometric_maps(blocks, width, affine=affine, engine=engine)
        dims.append(maps[0].G.shape[1])
        for row, mapping in zip(present, maps, strict=True):
            found[row][column] = mapping
    return [common_space.side_by_side(maps_of_row, dims) for maps_of_row in found]


def _row_groups(
    session: DcSession, contributions: Mapping[str, messages.Projections]
) -> list[Cells]:
    layout = session.layout
    return [
        {
            layout.slot(name).column: _check_projections(
                session, name, contributions[name]
            )
            for name in group
        }
        for group in layout.row_groups
    ]


def _check_projections(
    session: DcSession, name: str, given: messages.Projections
) -> messages.Projections:
    """Refuse projections without columns, or of more than the party has features.

    A declaration cannot: how many columns a party sends, it decides.
    """
    width, most = given.rows.shape[1], session.member(name).n_columns
    if width == 0:
        raise InvalidArray(f"{name!r} sent projections of no dimension.")
    if width > most:
        raise InvalidArray(
            f"{name!r} sent projections of {width} dimensions; it has {most} features."
        )
    magnitudes.check(f"What {name!r} sent", given.rows, given.anchors)
    return given


def _build_run(
    session: DcSession,
    found: Clustering,
    Z: RowSubset,
    maps: Sequence[CollaborationMap],
    figures: Figures,
) -> Run:
    sizes = np.bincount(found.labels, minlength=len(found.centroids))
    results: dict[str, Record] = {}
    begin = 0
    for row, n_rows in enumerate(session.row_counts):
        labels = messages.RowGroupLabels(
            labels=found.labels[begin : begin + n_rows], cluster_sizes=sizes
        )
        rows = range(begin, begin + n_rows)
        result = _let_out(session, labels, Z, rows, found.centroids, maps[row])
        results |= dict.fromkeys(session.layout.row_group(row), result)
        begin += n_rows
    summary = messages.Summary(
        cluster_sizes=sizes,
        starts=found.starts,
        inertia=found.inertia,
        n_dimensions=Z.shape[1],
    )
    return Run(results=results, summary=summary, figures=figures)


def _let_out(
    session: DcSession,
    labels: messages.RowGroupLabels,
    Z: RowSubset,
    rows: range,
    centroids: FloatArray,
    mapping: CollaborationMap,
) -> messages.RowGroupLabels:
    """Return labels alone, or with what else the terms let out."""
    params = session.params
    if params.output == "labels" and not params.predictor:
        return labels
    out = rows if params.output == "coordinates" else rows[:0]
    return messages.RowGroupModel(
        labels=labels.labels,
        cluster_sizes=labels.cluster_sizes,
        coordinates=Z.take(np.asarray(out, dtype=np.int64)),
        centroids=centroids,
        map_matrix=mapping.G if params.predictor else np.empty((0, 0)),
        map_offset=mapping.g if params.predictor else np.empty(0),
    )
