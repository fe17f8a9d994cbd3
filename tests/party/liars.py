"""Analysts that lie: a role, or the engine of the service's worker, patched.

Each takes the patch and returns a list to which it adds what it lied about: a test sees
that there was a lie at all. Parties run what they always run: they import none of this.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.lies import alter

from analyst_service import members, worker
from clustering_protocols import engine
from clustering_protocols.contract import Ask, Finish, Reopen, SessionContext
from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.engine.packets import Packet
from clustering_protocols.engine.session_state import OngoingSession
from clustering_protocols.protocols.llf import (
    columns_analyst,
    messages as llf,
    rows_analyst,
)
from clustering_protocols.protocols.llf.columns_party import build_distance_encoding
from clustering_protocols.protocols.llf.maths import build_scatter_encoding
from clustering_protocols.records import hash_chain
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.masks import add_all
from clustering_protocols.shared_stages import sums
from clustering_protocols.shared_stages.statistics import moments
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member

Patch = pytest.MonkeyPatch
Lies = list[Any]
Liar = Callable[[Patch], Lies]
Move = engine.Opened | engine.Closed
Given = Mapping[str, Record]

# Split rows of `llf`: the question for the result at another time than at the end


def closes_at_once(patch: Patch) -> Lies:
    """After the first update, as if the centroids rested."""
    lies: Lies = []

    honest = rows_analyst._enter_phase

    def close(session: Any, now: llf.UpdateState, phase: str) -> Ask:
        if phase != "update" or now.number == 1:
            return honest(session, now, phase)
        lies.append(now.number)
        return honest(session, now.replace(number=now.number - 1), "close")

    patch.setattr(rows_analyst, "_enter_phase", close)
    return lies


def drops_one_dimension(patch: Patch) -> Lies:
    """Ask all but the last for the second update: the difference is that party's own."""
    lies: Lies = []
    honest = rows_analyst._ask_cohort

    def ask(session: Any, now: llf.UpdateState) -> Ask:
        if now.phase != "update" or now.number != 2:
            return honest(session, now)
        cohort = now.cohort.copy()
        cohort[-1] = 0
        lies.append(cohort)
        return honest(session, now.replace(cohort=cohort))

    patch.setattr(rows_analyst, "_ask_cohort", ask)
    return lies


# Totals of moments, with something added


def widens_powers(patch: Patch) -> Lies:
    """Make all features but the first so wide that only the first is left of a row."""
    lies: Lies = []
    honest = sums.SumAnalyst.step

    def step(
        role: Any, session: SessionContext, state: sums.AddingUp, given: Any
    ) -> Ask | Reopen | Finish:
        move = honest(role, session, state, given)
        if not isinstance(move, Ask) or state.phase != 1:
            return move
        lies.append(state.phase)
        return replace(move, tasks={s: _bent(t) for s, t in move.tasks.items()})

    patch.setattr(sums.SumAnalyst, "step", step)
    return lies


def _bent(task: Record) -> sums.AddUp:
    asked = sums.AddUp.narrow(task)
    total: WordArray = np.array(asked.total)
    # counted powers, and a tag: their sum stays as it is
    counts = total[:-1].reshape(-1, moments.POWERS.n_words)
    counts[1:, 0] -= np.uint64(1)
    counts[1:, -1] += np.uint64(1)
    return sums.AddUp(phase=asked.phase, total=total)


# One party is told something else than the others


class SecondStory:
    """What one party is told, from some round on: consistent in itself."""

    def __init__(self, victim: str) -> None:
        self.victim = victim
        self.lines: dict[int, str] = {}

    def begins_with(self, packet: Packet) -> None:
        """Take the last line of a packet for the first of the story."""
        line = packet.history[-1]
        self.lines[transcript.line_number(line)] = line

    def retold(self, message: bytes) -> bytes:
        """Return a message with the history that the victim knows."""
        packet = packets.parse(message)
        lines = [self._line(line) for line in packet.history]
        return packets.encode_packet(replace(packet, history=lines))

    def _line(self, line: str) -> str:
        number = transcript.line_number(line)
        if number - 1 in self.lines and number not in self.lines:
            before = hash_chain.digest(self.lines[number - 1])
            said = {**json.loads(line), "previous": before}
            self.lines[number] = _written(said)
        return self.lines.get(number, line)


def _written(said: Mapping[str, Any]) -> str:
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


def two_camps(victim: str, begin: int) -> Liar:
    """Tell one party from a round on that somebody else was left out."""

    def liar(patch: Patch) -> Lies:
        story, lies = SecondStory(victim), Lies()

        def lie(agreement: bytes, move: Move) -> Move:
            del agreement
            if isinstance(move, engine.Opened) and move.round == begin:
                lies.append(begin)
                return _told(move, victim, _other_absence(story, move.tasks[victim]))
            return _retold(story, move)

        _patch_moves(patch, lie)
        _check_no_signature(patch)
        return lies

    return liar


def _other_absence(story: SecondStory, task: bytes) -> bytes:
    packet = packets.parse(task)
    *before, line = packet.history
    said = {**json.loads(line), "left_out": ["r1c1"]}
    lie = replace(packet, history=[*before, _written(said)])
    story.begins_with(lie)
    return packets.encode_packet(lie)


def other_labels(victim: str, shift: int) -> Liar:
    """Tell one of the hospitals labels shifted by so many rows, then all the same ones.

    Shifted by none, the story is true. In the second task a cluster is empty, so its
    centre is the one of before: the victim's would differ from that of the others as
    the analyst chose. The list gets, of every total after the first lie, whether the
    analyst can read it.
    """

    def liar(patch: Patch) -> Lies:
        story, lies = SecondStory(victim), Lies()
        honest = columns_analyst.ColumnsAnalyst.step

        def step(role: Any, session: Any, state: llf.ColumnsState, given: Any) -> Any:
            if not story.lines:
                return honest(role, session, state, given)
            total = add_all(each.words for each in given.values())
            if state.phase == "scatter":
                lies.append(_fits_scatter(session, total))
                return columns_analyst._build_finish(session, state)
            lies.append(build_distance_encoding(session).fits(total - total[:, :1]))
            return _one_cluster(session, state)

        def lie(agreement: bytes, move: Move) -> Move:
            if not isinstance(move, engine.Opened) or story.lines:
                return _retold(story, move)
            task = packets.parse(move.tasks[victim])
            if task.header.record["values"].get("number") != 2:
                return move
            other = alter(
                agreement,
                move.tasks[victim],
                lambda asked: {"labels": np.roll(asked.labels, shift)},
            )
            story.begins_with(packets.parse(other))
            return _told(move, victim, other)

        patch.setattr(columns_analyst.ColumnsAnalyst, "step", step)
        _patch_moves(patch, lie)
        _check_no_signature(patch)
        return lies

    return liar


def _fits_scatter(session: Any, total: WordArray) -> bool:
    fits = build_scatter_encoding(session).fits(total)
    return fits and not bool((total.view(np.int64) < 0).any())


def _one_cluster(session: Any, state: llf.ColumnsState) -> Ask:
    """Go on with labels of its own, whatever the distances are."""
    following = state.model_copy(
        update={
            "number": state.number + 1,
            "labels": np.zeros_like(state.labels),
            "tolerances": np.append(state.tolerances, 1.0),
        }
    )
    if state.number > session.params.max_iter:
        following = following.model_copy(update={"phase": "scatter"})
        scatter = llf.Scatter(labels=following.labels)
        return Ask.to_everybody(session, scatter, state=following)
    return columns_analyst._ask_for_distances(session, following)


# The opening and the end


def plays_all_but(victim: str, secret: bytes) -> Liar:
    """Sit in every other place, with the secret that one invitation holds."""

    def liar(patch: Patch) -> Lies:
        lies: Lies = []

        def agree(terms: bytes, roster: Mapping[str, Member]) -> bytes:
            puppets = {
                slot: roster_entries.create_roster_line(
                    secret,
                    terms,
                    slot,
                    bytes(32),
                    Institution.derive(bytes(32)),
                    n_rows=line.n_rows,
                    n_columns=line.n_columns,
                )
                for slot, line in roster.items()
                if slot != victim
            }
            lies.append(sorted(puppets))
            return roster_entries.build_agreement(terms, {**roster, **puppets})

        patch.setattr(members, "build_agreement", agree)
        return lies

    return liar


# How the worker's engine is made to lie


def _patch_moves(patch: Patch, lie: Callable[[bytes, Move], Move]) -> None:
    honest = worker._compute_move

    def advance(job: worker.Job, blobs: Any) -> Move:
        return lie(job.agreement, honest(job, blobs))

    patch.setattr(worker, "_compute_move", advance)


def _check_no_signature(patch: Patch) -> None:
    """Let the analyst take any signature for one of what it told the others."""

    def signed(ongoing: OngoingSession, records: Given) -> OngoingSession:
        if ongoing.index and not ongoing.is_last_stage:
            return ongoing
        found = signatures.collect_signatures(ongoing.session, records)
        return replace(ongoing, signatures=found)

    patch.setattr(OngoingSession, "collect_signatures", signed)


def _told(move: engine.Opened, slot: str, task: bytes) -> engine.Opened:
    return replace(move, tasks={**move.tasks, slot: task})


def _retold(story: SecondStory, move: Move) -> Move:
    if isinstance(move, engine.Closed):
        told = story.retold(move.results[story.victim])
        return replace(move, results={**move.results, story.victim: told})
    if story.victim not in move.tasks:
        return move
    return _told(move, story.victim, story.retold(move.tasks[story.victim]))
