"""The analyst role for split rows: adds up, hands totals back, keeps the cohort.

| task → contribution |
|---|
| `update` → `sums`, at most T times |
| `close` → `closing`: rows added up by final label |
| `gather` → `gathered`: sizes, and how rows lie around the means of these labels |
| `tell` → `told`: the leader says what the terms let out, all say the digest |

The analyst reads no totals: the leader says, with its next sums, that the centroids have
come to rest; those sums are then not used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import AnalystRole, Ask, Finish, Reopen, all_of
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_tagged
from clustering_protocols.shared_stages.scaling import scaler
from clustering_protocols.shared_stages.statistics import magnitudes

from . import maths, messages
from .maths import Encoding, mark_members, members_of, rows_of, share_of_slots
from .params import LlfSession, LosslessFederated

Given = Mapping[str, Record]
_BY_LABEL: Final = ("closed_in", "closed_by", "closing")
_AROUND: Final = ("gathered_in", "gathered_by", "gathered")
"""Fields of a closing sum, in the analyst's state and in what is told of it."""


class RowsAnalyst(AnalystRole[LosslessFederated, Record, messages.UpdateState]):
    """Runs updates until the centroids rest, then closes."""

    state = messages.UpdateState

    def start(self, session: LlfSession) -> Ask | Finish:
        """Ask for the first update."""
        return _ask_update(session, _at_first(session), 1)

    def step(
        self, session: LlfSession, state: messages.UpdateState, contributions: Given
    ) -> Ask | Reopen | Finish:
        """Return the next round, or this one again without those who are away."""
        members = members_of(session, state.cohort)
        absent = [slot for slot in members if slot not in contributions]
        if absent:
            left = without(session, state, absent)
            again = _ASKS[state.phase](session, left)
            return Reopen(state=left, reason="Parties missed the deadline.", ask=again)
        now = record_answers(state)
        if now.phase == "update":
            return _follow_update(session, now, contributions)
        if now.phase == "close":
            shares = all_of(messages.ClosingShare, contributions)
            now = everybody(session, _with_sums(session, now, shares, _BY_LABEL))
            return _gather_task(session, replace_fields(now, phase="gather"))
        if now.phase == "gather":
            shares = all_of(messages.GatheredSizes, contributions)
            return _ask_tell(session, _with_sums(session, now, shares, _AROUND))
        return _finish_session(session, now, contributions)


def _at_first(session: LlfSession) -> messages.UpdateState:
    n_slots, width = len(session.slots), session.member(session.slots[0]).n_columns
    nobody = np.zeros(n_slots, dtype=np.int64)
    return messages.UpdateState(
        phase="update",
        number=1,
        cohort=nobody.astype(np.uint8),
        seen=nobody,
        sits_out=nobody,
        misses=nobody,
        updates=np.empty((0, 3), dtype=np.int64),
        cohorts=np.empty((0, n_slots), dtype=np.uint8),
        totals=np.empty((0, _n_words(session)), dtype=np.uint64),
        tolerances=np.empty(0),
        known=np.empty((0, width)),
        closed_in=np.empty(0, dtype=np.int64),
        closed_by=np.empty(0, dtype=np.uint8),
        closing=np.empty(0, dtype=np.uint64),
        gathered_in=np.empty(0, dtype=np.int64),
        gathered_by=np.empty(0, dtype=np.uint8),
        gathered=np.empty(0, dtype=np.uint64),
    )


# After an update


def _follow_update(session: LlfSession, now: messages.UpdateState, given: Given) -> Ask:
    shares = all_of(messages.Sums, given)
    leader = shares[members_of(session, now.cohort)[0]]
    total = add_tagged(share.words for share in shares.values())
    if leader.moved is not None:
        moves = np.append(now.tolerances, leader.moved)
        now = replace_fields(now, tolerances=moves)
    if leader.stop:
        return _ask_close(session, replace_fields(now, number=now.number - 1))
    now = _append_total(now, leader, total)
    if now.number == session.params.max_iter:
        return _ask_close(session, now)
    return _ask_update(session, now, now.number + 1)


def _append_total(
    now: messages.UpdateState, leader: messages.Sums, total: WordArray
) -> messages.UpdateState:
    """Return the state with the total of this update, for those who have not got it."""
    made = np.array([[now.number, leader.round, leader.attempt]])
    kept = now.updates[:, 0] > now.seen.min()
    now = replace_fields(
        now,
        updates=now.updates[kept],
        cohorts=now.cohorts[kept],
        totals=now.totals[kept],
    )
    return replace_fields(
        now,
        updates=np.concatenate([now.updates, made]),
        cohorts=np.concatenate([now.cohorts, now.cohort[None]]),
        totals=np.concatenate([now.totals, total[None]]),
    )


def _n_words(session: LlfSession) -> int:
    """Return the size of a share of an update, with its tag."""
    n_rows = rows_of(session, session.slots)
    return Encoding.of(session.params, scaler(session, 0, None), n_rows).n_words + 1


# The end


def _with_sums(
    session: LlfSession,
    now: messages.UpdateState,
    shares: Mapping[str, messages.ClosingShare],
    names: tuple[str, str, str],
) -> messages.UpdateState:
    """Return the state with a closing sum: in which round, over whom, and its total."""
    leader = shares[members_of(session, now.cohort)[0]]
    when = np.array([leader.round, leader.attempt])
    total = add_tagged(share.words for share in shares.values())
    sums = zip(names, (when, now.cohort, total), strict=True)
    return replace_fields(now, **dict(sums))


def _finish_session(
    session: LlfSession, now: messages.UpdateState, given: Given
) -> Finish:
    told = all_of(messages.DigestReport, given)
    if len({each.digest for each in told.values()}) > 1:
        raise ProtocolFailed("The parties do not agree on the result.")
    leader = told[members_of(session, now.cohort)[0]]
    magnitudes.check("The leader's result", leader.centroids)
    shown = dict(leader)
    del shown["digest"]
    figures = shown.pop("figures")
    results = {
        slot: messages.FinalTotals(
            **select_missing_totals(now, index),
            **_kept_as(now, _BY_LABEL + _AROUND),
        )
        for index, slot in enumerate(session.slots)
    }
    summary = messages.Summary(**shown, tolerances=now.tolerances)
    return Finish.with_results(
        results, summary=summary, figures=figures, labelled_at_home=True
    )


def _kept_as(now: messages.UpdateState, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(now, name) for name in names}


# What is asked


def _ask_update(session: LlfSession, now: messages.UpdateState, number: int) -> Ask:
    return _update_task(
        session,
        replace_fields(draw(session, now, number), number=number, phase="update"),
    )


def _ask_close(session: LlfSession, now: messages.UpdateState) -> Ask:
    return _close_task(session, replace_fields(everybody(session, now), phase="close"))


def _ask_tell(session: LlfSession, now: messages.UpdateState) -> Ask:
    now = everybody(session, now)
    return _tell_task(session, replace_fields(now, phase="tell"))


def _update_task(session: LlfSession, now: messages.UpdateState) -> Ask:
    return _ask(
        session,
        now,
        lambda members, lacking: messages.Update(
            number=now.number, members=members, **lacking
        ),
        n_words=_n_words(session),
    )


def _close_task(session: LlfSession, now: messages.UpdateState) -> Ask:
    width = session.member(session.slots[0]).n_columns
    return _ask(
        session,
        now,
        lambda members, lacking: messages.Close(members=members, **lacking),
        n_words=maths.n_words_of_labels(session.params, width),
    )


def _gather_task(session: LlfSession, now: messages.UpdateState) -> Ask:
    return _ask(
        session,
        now,
        lambda members, lacking: messages.Gather(
            members=members, **lacking, **_kept_as(now, _BY_LABEL)
        ),
        n_words=maths.n_words_around(session.params),
    )


def _tell_task(session: LlfSession, now: messages.UpdateState) -> Ask:
    return _ask(
        session,
        now,
        lambda members, lacking: messages.ReportDigest(
            members=members, **lacking, **_kept_as(now, _BY_LABEL + _AROUND)
        ),
        n_words=0,
    )


_ASKS = {
    "update": _update_task,
    "close": _close_task,
    "gather": _gather_task,
    "tell": _tell_task,
}


def _ask(
    session: LlfSession,
    now: messages.UpdateState,
    task: Callable[[list[str], dict[str, Any]], Record],
    *,
    n_words: int,
) -> Ask:
    members = members_of(session, now.cohort)
    params = session.params
    tasks = {
        slot: task(members, select_missing_totals(now, index))
        for index, slot in enumerate(session.slots)
        if slot in members
    }
    return Ask(
        state=now,
        tasks=tasks,
        dims=dict.fromkeys(members, {"w": n_words} if n_words else {}),
        quorum=min(params.quorum or len(members), len(members)),
        progress={
            "updates": now.number - (now.phase == "update"),
            "of_at_most": params.max_iter,
            "moved": [float(moved) for moved in now.tolerances],
        },
    )


def draw(
    session: LlfSession, now: messages.UpdateState, number: int
) -> messages.UpdateState:
    """Return the state with the cohort of an update: a share γ of those at hand."""
    now = everybody(session, now)
    return replace_fields(now, cohort=share_of_slots(session, now.cohort, number))


def everybody(session: LlfSession, now: messages.UpdateState) -> messages.UpdateState:
    """Return the state with all slots in the cohort that are not left out."""
    at_hand = now.sits_out == 0
    if at_hand.sum() < session.params.least_parties:
        at_hand = np.ones_like(at_hand)  # ask those who were away rather than end
    rest = np.maximum(now.sits_out - 1, 0)
    return replace_fields(now, cohort=at_hand.astype(np.uint8), sits_out=rest)


def without(
    session: LlfSession, now: messages.UpdateState, absent: Sequence[str]
) -> messages.UpdateState:
    """Return the state in which a round is opened again for those who answered.

    Who misses a deadline is asked again in the next round; who misses several in a row
    sits out 1, 3, 7 … rounds, so that a party that is gone does not cost every round a
    deadline.

    Raises ProtocolFailed if too few are left.
    """
    gone = mark_members(session, absent).astype(bool)
    left = now.cohort.astype(bool) & ~gone
    if left.sum() < session.params.least_parties:
        raise ProtocolFailed(f"Only {int(left.sum())} parties answered in time.")
    misses = now.misses + gone
    sits_out = np.where(gone, 2 ** np.maximum(misses - 1, 0) - 1, now.sits_out)
    return replace_fields(
        now, cohort=left.astype(np.uint8), misses=misses, sits_out=sits_out
    )


def record_answers(now: messages.UpdateState) -> messages.UpdateState:
    """Return the state after all of the cohort answered: they have all totals so far."""
    there = now.cohort.astype(bool)
    given = now.number - 1 if now.phase == "update" else now.number
    seen = np.where(there, np.maximum(now.seen, given), now.seen)
    return replace_fields(now, seen=seen, misses=np.where(there, 0, now.misses))


def select_missing_totals(now: messages.UpdateState, slot_index: int) -> dict[str, Any]:
    """Return the fields of :class:`messages.Totals` for one slot."""
    lacks = now.updates[:, 0] > now.seen[slot_index]
    return {
        "updates": now.updates[lacks],
        "cohorts": now.cohorts[lacks],
        "totals": now.totals[lacks],
    }


def replace_fields(now: messages.UpdateState, **changes: Any) -> messages.UpdateState:
    """Return the state with some fields replaced, checked again."""
    return messages.UpdateState.model_validate(dict(now) | changes)
