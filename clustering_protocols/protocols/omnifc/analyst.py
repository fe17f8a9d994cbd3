"""The analyst role: answers in, distances decoded, labels per party out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.algorithms.embedding import classical_scaling
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen, Run
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.quality.rows import of_rows
from clustering_protocols.quality.runs import across
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record

from . import clustering, decoding, lagrange, landmarks, limits, messages, rosters
from .clustering import ClusterLabels
from .params import OmniFC, OmniSession


class Decoder(AnalystRole[OmniFC, messages.EncodedDistances]):
    """One round: answers in, labels out."""

    def start(self, session: OmniSession) -> Ask | Finish:
        """Ask everybody for the distances between its shares."""
        params = session.params
        pairs = _pairs(session)
        enough = lagrange.count_needed_values(params.segments, params.noise)
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
    n, d = rosters.n_rows(session), rosters.n_features(session)
    return limits.answer_pairs(session.params, n, d)


def _rows(
    session: OmniSession, distances: decoding.Answers, bits: int
) -> tuple[FloatArray, FloatArray | None]:
    """Return the rows as they were shared out, but for a motion; and D where it came."""
    params = session.params
    n, d = rosters.n_rows(session), rosters.n_features(session)
    decoder = decoding.DistanceDecoder.of(params, session.slots, distances, bits)
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
