"""Where an order stands and what it asks, from its files to a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from clustering_protocols.catalogue import find_risk
from coterie_pages.models.desk import AtWork, GivenConsent, PendingDecision
from coterie_pages.views.risks import show_risks
from party_sdk.desk.party.addressed_party import AddressedParty
from party_sdk.desk.party.own_choices import limit_in
from party_sdk.home.clock import now
from party_sdk.home.identities import Acquaintances
from party_sdk.party.leave import has_left
from party_sdk.party.roster import Roster
from party_sdk.supervisor import OrderState, OrderStatus, PendingQuestion, QuestionKind


def standing_of(kept: AddressedParty, *, missed: Sequence[str] = ()) -> AtWork:
    """Return where the order of a party stands; :class:`NotReady` if there is none.

    missed: risks without a tick in the form that was sent.
    """
    order, question = kept.files.order(), kept.files.question()
    return AtWork(
        **_describe_status(kept.files.status()),
        title=kept.title(),
        asked=None if question is None else _to_decision(question),
        table="" if order.table is None else Path(order.table.path).name,
        asks="everything" if order.confirm else "readable" * order.readable,
        consents=tuple(
            GivenConsent(meaning=each.meaning, at=each.at)
            for each in kept.files.folder.consents.kinds
        ),
        withdrawn_at=kept.files.folder.consents.withdrawn_at,
        process=kept.desk.background.process,
        missed=tuple(missed),
        for_good=_left_for_good(kept),
        compares_runs=kept.compares_runs,
        **_members(kept, question),
    )


def _left_for_good(kept: AddressedParty) -> bool:
    """Return whether a party has left after its slot was taken: none comes back then."""
    folder = kept.files.folder
    return folder.has_joined and has_left(folder)


def _describe_status(status: OrderStatus) -> dict[str, Any]:
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
        "pace": status.pace,
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


def _members(
    kept: AddressedParty, question: PendingQuestion | None
) -> Mapping[str, Any]:
    """Return who takes part and the number to compare, once all have joined."""
    if question is not None and question.kind is QuestionKind.SAFETY_NUMBER:
        seats, number = question.members, question.safety_number
    else:
        agreement = kept.files.folder.load_agreement()
        if agreement is None:
            return {}
        roster = Roster.of(agreement, Acquaintances(kept.desk.home), kept.slot)
        seats, number = roster.seats, roster.safety_number
    return {"members": seats, "safety_number": number}


def _to_decision(question: PendingQuestion) -> PendingDecision:
    return PendingDecision(
        id=question.id,
        kind=question.kind.value,
        sentence=question.sentence,
        risks=show_risks({code: find_risk(code) for code in question.risks}),
        leaving=question.contribution,
        asked_at=question.asked_at,
    )
