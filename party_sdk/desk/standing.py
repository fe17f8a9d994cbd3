"""Where an order stands and what it asks, from its files to a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from coterie_pages.models import Risk
from coterie_pages.models.desk import (
    Asked,
    AskedOf,
    AtWork,
    Leaving,
    LeavingArray,
    LeavingEnvelope,
)
from party_sdk.desk.kept import Kept
from party_sdk.desk.own_choices import limit_in
from party_sdk.identities import Acquaintances
from party_sdk.inspection import Inspection
from party_sdk.leaving import has_left
from party_sdk.roster import Roster
from party_sdk.supervisor import OrderState, OrderStatus, Question, QuestionKind
from party_sdk.supervisor.clock import now

_LONGEST: Final = 200


def standing_of(kept: Kept, *, missed: Sequence[str] = ()) -> AtWork:
    """Return where the order of a party stands; :class:`NotReady` if there is none.

    missed: risks without a tick in the form that was sent.
    """
    order, question = kept.files.order(), kept.files.question()
    return AtWork(
        **_standing(kept.files.status()),
        title=kept.title(),
        asked=None if question is None else _asked(question),
        table="" if order.table is None else Path(order.table.path).name,
        confirm=order.confirm,
        process=kept.desk.background.process,
        missed=tuple(missed),
        for_good=_left_for_good(kept),
        **_members(kept, question),
    )


def _left_for_good(kept: Kept) -> bool:
    """Return whether a party has left after its slot was taken: none comes back then."""
    folder = kept.files.folder
    return folder.has_joined and has_left(folder)


def _standing(status: OrderStatus) -> dict[str, Any]:
    trouble = status.trouble
    return {
        "session": status.session,
        "slot": status.slot,
        "protocol": status.protocol,
        "state": status.state.value,
        "over": status.is_over,
        "stage": status.stage or "",
        "stage_number": status.stage_number,
        "n_stages": status.n_stages,
        "round": status.round,
        "updates": status.updates,
        "n_updates": status.n_rounds,
        "awaited": status.awaited,
        "awaited_since": status.awaited_since,
        "moved": status.moved,
        "outage_since": status.outage_since,
        "headline": "" if trouble is None else trouble.headline,
        "detail": "" if trouble is None else trouble.detail,
        "remedy": "" if trouble is None else trouble.remedy,
        "limit": ""
        if trouble is None
        else limit_in(f"{trouble.detail} {trouble.remedy}"),
        "restarts": status.restarts,
        "placed_at": status.placed_at,
        "started_at": _begun(status),
        "ended_at": status.ended_at,
        "now": now(),
    }


def _begun(status: OrderStatus) -> datetime | None:
    """Return when it began, as it was placed last."""
    if status.started_at is None or status.state is OrderState.QUEUED:
        return None
    return max(status.started_at, status.placed_at)


def _members(kept: Kept, question: Question | None) -> Mapping[str, Any]:
    """Return who takes part and the number to compare, once all have joined."""
    if question is not None and question.kind is QuestionKind.SAFETY_NUMBER:
        seats: Any = question.members
        number = question.safety_number
    else:
        agreement = kept.files.folder.load_agreement()
        if agreement is None:
            return {}
        roster = Roster.of(agreement, Acquaintances(kept.desk.home), kept.slot)
        seats, number = roster.seats, roster.safety_number
    members = tuple(
        AskedOf(
            slot=seat.slot,
            name=seat.name,
            known=seat.known,
            fingerprint=seat.fingerprint,
            n_rows=seat.n_rows,
            n_columns=seat.n_columns,
            own=seat.slot == kept.slot,
        )
        for seat in seats
    )
    return {"members": members, "safety_number": number}


def _asked(question: Question) -> Asked:
    found = question.contribution
    return Asked(
        id=question.id,
        kind=question.kind.value,
        sentence=question.sentence,
        risks=tuple(Risk(code=c, sentence=s) for c, s in question.risks.items()),
        leaving=None if found is None else leaving_of(found),
        asked_at=question.asked_at,
    )


def leaving_of(found: Inspection) -> Leaving:
    """Return what would leave, as a page shows it."""
    return Leaving(
        stage=found.stage,
        round=found.round,
        attempt=found.attempt,
        kind=found.kind,
        values=dict(said_of(found.values)),
        arrays=tuple(
            LeavingArray(
                name=each.name,
                shape=each.shape,
                dtype=each.dtype,
                low=each.minimum,
                high=each.maximum,
                n_bytes=each.n_bytes,
            )
            for each in found.arrays
        ),
        envelopes=tuple(
            LeavingEnvelope(receiver=e.receiver, kind=e.kind, n_bytes=e.n_bytes)
            for e in found.envelopes
        ),
        n_bytes=found.n_bytes,
        notes=dict(said_of(found.notes)),
    )


def said_of(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a contribution or a protocol says, shortened where it is long."""
    for name, value in values.items():
        said = f"{value:.4g}" if isinstance(value, float) else str(value)
        yield name, said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
