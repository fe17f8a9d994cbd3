"""Who is asked in which round of split rows, and which totals each slot still lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import ByteArray

from . import messages
from .params import LlfSession


def members_of(session: LlfSession, cohort: ByteArray) -> list[str]:
    """Return the slots that a cohort marks, in order."""
    return [slot for slot, there in zip(session.slots, cohort, strict=True) if there]


def mark_members(session: LlfSession, members: Sequence[str]) -> ByteArray:
    """Return a one for each member among the slots."""
    return np.array([slot in members for slot in session.slots], dtype=np.uint8)


def draw(
    session: LlfSession, now: messages.UpdateState, number: int
) -> messages.UpdateState:
    """Return the state with the cohort of an update: a share γ of those at hand."""
    now = everybody(session, now)
    return replace_fields(now, cohort=_share(session, now.cohort, number))


def draw_members(session: LlfSession, number: int) -> list[str]:
    """Return the members of an update where nobody may be left out for absences."""
    everyone = np.ones(len(session.slots), dtype=np.uint8)
    return members_of(session, _share(session, everyone, number))


def _share(session: LlfSession, at_hand: ByteArray, number: int) -> ByteArray:
    params, there = session.params, np.flatnonzero(at_hand)
    wanted = max(
        params.least_parties, math.ceil(params.participation * len(session.slots))
    )
    if wanted >= len(there):
        return at_hand
    drawn = session.public_stream("llf", "cohort", number).permutation(len(there))
    cohort = np.zeros_like(at_hand)
    cohort[there[drawn[:wanted]]] = 1
    return cohort


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


def prune_totals(now: messages.UpdateState) -> messages.UpdateState:
    """Return the state without totals that every slot has got."""
    kept = now.updates[:, 0] > now.seen.min()
    return replace_fields(
        now,
        updates=now.updates[kept],
        cohorts=now.cohorts[kept],
        totals=now.totals[kept],
    )


def replace_fields(now: messages.UpdateState, **changes: Any) -> messages.UpdateState:
    """Return the state with some fields replaced, checked again."""
    return messages.UpdateState.model_validate(dict(now) | changes)
