"""The analyst role for split rows: it adds up masked shares and returns the totals.

| task → contribution |
|---|
| `update` → `sums`, at most T times |
| `close` → `closing`: rows added up by final label |
| `gather` → `gathered`: sizes, and the scatter of rows around the means of these labels |
| `tell` → `told`: the digest from all parties, and what the terms publish from the leader |

The analyst cannot read the totals. So the leader announces with its next sums that the
centroids have converged, and the analyst discards the sums of that round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import (
    AnalystRole,
    Ask,
    Finish,
    Reopen,
    agreed,
    narrow_all,
)
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.masks import add_tagged_shares
from clustering_protocols.shared_stages.statistics import magnitudes

from . import maths, messages
from .maths import cohort_members
from .params import LlfSession, LosslessFederated

Contributions = Mapping[str, Record]
_BY_LABEL: Final = ("closed_in", "closed_by", "closing")
_FOR_FIGURES: Final = ("gathered_in", "gathered_by", "gathered")
"""The fields of states, tasks and results that describe a closing sum and its total."""
_CLOSING: Final[Mapping[str, tuple[tuple[str, str, str], str]]] = {
    "close": (_BY_LABEL, "gather"),
    "gather": (_FOR_FIGURES, "tell"),
}
"""For each phase with a closing sum, the fields for its total, and the next phase."""
_TASKS: Final[Mapping[str, tuple[Callable[..., Record], tuple[str, ...]]]] = {
    "update": (messages.Update, ("number",)),
    "close": (messages.Close, ()),
    "gather": (messages.Gather, _BY_LABEL),
    "tell": (messages.ReportDigest, _BY_LABEL + _FOR_FIGURES),
}
"""The class of each phase's task, and the fields of the state that the task contains."""


class RowsAnalyst(AnalystRole[LosslessFederated, Record, messages.UpdateState]):
    """Runs updates until the centroids converge, and then the closing rounds."""

    state = messages.UpdateState

    def start(self, session: LlfSession) -> Ask | Finish:
        """Ask the parties for the first update."""
        n_slots, width = len(session.slots), session.member(session.slots[0]).n_columns
        zeros = np.zeros(n_slots, dtype=np.int64)
        no_rounds = np.empty(0, dtype=np.int64)
        no_members = np.empty(0, dtype=np.uint8)
        no_words = np.empty(0, dtype=np.uint64)
        state = messages.UpdateState(
            phase="update",
            number=1,
            cohort=zeros.astype(np.uint8),
            seen=zeros,
            sits_out=zeros,
            misses=zeros,
            updates=np.empty((0, 3), dtype=np.int64),
            cohorts=np.empty((0, n_slots), dtype=np.uint8),
            totals=np.empty((0, _count_words(session, "update")), dtype=np.uint64),
            tolerances=np.empty(0),
            known=np.empty((0, width)),
            closed_in=no_rounds,
            closed_by=no_members,
            closing=no_words,
            gathered_in=no_rounds,
            gathered_by=no_members,
            gathered=no_words,
        )
        return _enter_phase(session, state, "update")

    def step(
        self,
        session: LlfSession,
        state: messages.UpdateState,
        contributions: Contributions,
    ) -> Ask | Reopen | Finish:
        """Ask for the next round, or repeat this one without the absent parties."""
        members = cohort_members(session, state.cohort)
        absent = [slot for slot in members if slot not in contributions]
        if absent:
            state = _exclude_absent(session, state, absent)
            reason = "Parties missed the deadline."
            return Reopen(reason=reason, ask=_ask_cohort(session, state))
        state = _mark_answered(state)
        if state.phase == "update":
            return _process_update(session, state, contributions)
        if state.phase == "tell":
            return _finish_session(session, state, contributions)
        names, following = _CLOSING[state.phase]
        shares = narrow_all(messages.ClosingShare, contributions)
        leader = shares[members[0]]
        attempt = np.array([leader.round, leader.attempt])
        total = add_tagged_shares(share.words for share in shares.values())
        fields = zip(names, (attempt, state.cohort, total), strict=True)
        return _enter_phase(session, state.replace(**dict(fields)), following)


def _process_update(
    session: LlfSession, state: messages.UpdateState, contributions: Contributions
) -> Ask:
    shares = narrow_all(messages.Sums, contributions)
    leader = shares[cohort_members(session, state.cohort)[0]]
    total = add_tagged_shares(share.words for share in shares.values())
    if leader.moved is not None:
        moves = np.append(state.tolerances, leader.moved)
        state = state.replace(tolerances=moves)
    if leader.stop:
        state = state.replace(number=state.number - 1)
        return _enter_phase(session, state, "close")
    update = np.array([[state.number, leader.round, leader.attempt]])
    unseen = state.updates[:, 0] > state.seen.min()
    state = state.replace(
        updates=np.concatenate([state.updates[unseen], update]),
        cohorts=np.concatenate([state.cohorts[unseen], state.cohort[None]]),
        totals=np.concatenate([state.totals[unseen], total[None]]),
    )
    if state.number == session.params.max_iter:
        return _enter_phase(session, state, "close")
    return _enter_phase(session, state.replace(number=state.number + 1), "update")


def _finish_session(
    session: LlfSession, state: messages.UpdateState, contributions: Contributions
) -> Finish:
    reports = narrow_all(messages.DigestReport, contributions)
    agreed(reports, "digest", "the result")
    leader = reports[cohort_members(session, state.cohort)[0]]
    magnitudes.check_magnitudes("The leader's result", leader.centroids)
    published = {
        name: getattr(leader, name) for name in messages.PublishedResult.model_fields
    }
    sums = {name: getattr(state, name) for name in _BY_LABEL + _FOR_FIGURES}
    results = {
        slot: messages.FinalTotals(**select_missing_totals(state, index), **sums)
        for index, slot in enumerate(session.slots)
    }
    summary = messages.Summary(**published, tolerances=state.tolerances)
    return Finish.with_results(
        results, summary=summary, figures=leader.figures, labelled_at_home=True
    )


def _enter_phase(session: LlfSession, state: messages.UpdateState, phase: str) -> Ask:
    """Ask all parties that are not left out."""
    available = state.sits_out == 0
    if available.sum() < session.params.least_parties:
        available = np.ones_like(available)  # rather than end the session
    state = state.replace(
        phase=phase,
        cohort=available.astype(np.uint8),
        sits_out=np.maximum(state.sits_out - 1, 0),
    )
    return _ask_cohort(session, state)


def _ask_cohort(session: LlfSession, state: messages.UpdateState) -> Ask:
    members = cohort_members(session, state.cohort)
    params = session.params
    task, names = _TASKS[state.phase]
    fields = {name: getattr(state, name) for name in names}
    tasks = {
        slot: task(members=members, **fields, **select_missing_totals(state, index))
        for index, slot in enumerate(session.slots)
        if slot in members
    }
    n_words = _count_words(session, state.phase)
    return Ask(
        state=state,
        tasks=tasks,
        dims=dict.fromkeys(members, {"w": n_words} if n_words else {}),
        quorum=min(params.quorum or len(members), len(members)),
        progress={
            "updates": state.number - (state.phase == "update"),
            "of_at_most": params.max_iter,
            "moved": [float(moved) for moved in state.tolerances],
        },
    )


def _count_words(session: LlfSession, phase: str) -> int:
    """Return the number of words in a share and its tag, or 0 if a phase has no shares."""
    params, width = session.params, session.member(session.slots[0]).n_columns
    if phase == "gather":
        return maths.n_words_of_figures(params)
    return 0 if phase == "tell" else maths.n_words_of_sums(params, width)


def _exclude_absent(
    session: LlfSession, state: messages.UpdateState, absent: Sequence[str]
) -> messages.UpdateState:
    """Return the state for repeating a round without the absent parties.

    A party that misses one deadline is asked again in the next round. A party that
    misses several in a row is left out for 1, 3, 7 … rounds, which do not wait for it.

    Raises ProtocolFailed if too few parties remain.
    """
    missed = np.array([slot in absent for slot in session.slots])
    cohort = state.cohort.astype(bool) & ~missed
    if cohort.sum() < session.params.least_parties:
        raise ProtocolFailed(f"Only {int(cohort.sum())} parties answered in time.")
    misses = state.misses + missed
    sits_out = np.where(missed, 2 ** np.maximum(misses - 1, 0) - 1, state.sits_out)
    return state.replace(
        cohort=cohort.astype(np.uint8), misses=misses, sits_out=sits_out
    )


def _mark_answered(state: messages.UpdateState) -> messages.UpdateState:
    """Return the state after the whole cohort has answered, and so has seen all totals."""
    answered = state.cohort.astype(bool)
    number = state.number - 1 if state.phase == "update" else state.number
    seen = np.where(answered, np.maximum(state.seen, number), state.seen)
    return state.replace(seen=seen, misses=np.where(answered, 0, state.misses))


def select_missing_totals(
    state: messages.UpdateState, slot_index: int
) -> dict[str, Any]:
    """Return the fields of :class:`messages.Totals` with totals that a slot still lacks."""
    missing = state.updates[:, 0] > state.seen[slot_index]
    return {
        "updates": state.updates[missing],
        "cohorts": state.cohorts[missing],
        "totals": state.totals[missing],
    }
