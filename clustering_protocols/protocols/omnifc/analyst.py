"""The analyst role: answers in, distances decoded, labels per party out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustering_protocols.arrays import IntArray
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Reopen,
    SessionContext,
    ask_all,
)
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.records import Record

from . import clustering, decoding, lagrange, messages, rosters
from .clustering import Clusters
from .sizes import n_pairs


class Decoder(AnalystRole):
    """One round: answers in, labels out."""

    state = messages.Comparing

    def start(self, session: SessionContext) -> Ask | Finish:
        """Ask everybody for the distances between its shares."""
        params = rosters.params_of(session)
        pairs = n_pairs(rosters.n_rows(session))
        enough = lagrange.needed(params.segments, params.noise)
        return ask_all(
            session,
            messages.Compare(),
            expects=messages.Answer,
            state=messages.Comparing(),
            dims={slot: {"pairs": pairs} for slot in session.slots},
            quorum=None if params.hide_segments else enough,
        )

    def step(
        self,
        session: SessionContext,
        state: Record,
        contributions: Mapping[str, Record],
    ) -> Ask | Reopen | Finish:
        """Return the labels of all parties' rows."""
        params = rosters.params_of(session)
        answers = {
            slot: messages.Answer.narrow(record)
            for slot, record in contributions.items()
        }
        bits = _common_bits(answers)
        squared = np.empty(n_pairs(rosters.n_rows(session)))
        distances = {slot: answer.distances for slot, answer in answers.items()}
        decoding.decode(params, session.slots, distances, bits, squared)
        found = clustering.of_distances(
            params,
            squared,
            rosters.n_features(session),
            lambda use: session.generator("omnifc", use),
        )
        return _finish(session, found, bits)


def _common_bits(answers: Mapping[str, messages.Answer]) -> int:
    found = {answer.bits for answer in answers.values()}
    if len(found) != 1:
        raise ProtocolFailed(
            f"The parties kept different numbers of binary digits: {sorted(found)}."
        )
    return found.pop()


def _finish(session: SessionContext, found: Clusters, bits: int) -> Finish:
    k = rosters.params_of(session).n_clusters or int(found.labels.max(initial=-1)) + 1
    inside = found.labels[found.labels >= 0]
    sizes = np.bincount(inside, minlength=k)
    results: dict[str, Record] = {}
    begin = 0
    for slot, n_rows in zip(session.slots, rosters.row_counts(session), strict=True):
        rows = slice(begin, begin + n_rows)
        results[slot] = _result(found, rows, sizes)
        begin += n_rows
    summary = messages.Summary(
        cluster_sizes=sizes,
        starts=found.starts,
        noise_rows=len(found.labels) - len(inside),
        bits=bits,
        eps=found.eps,
    )
    return Finish(results=results, summary=summary)


def _result(found: Clusters, rows: slice, sizes: IntArray) -> Record:
    labels = found.labels[rows]
    if found.memberships is None:
        return messages.RowGroupLabels(labels=labels, cluster_sizes=sizes)
    return messages.RowGroupMemberships(
        labels=labels, cluster_sizes=sizes, memberships=found.memberships[rows]
    )
