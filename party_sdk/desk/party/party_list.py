"""The start page: the parties of this home, and a form for a new invitation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import NotReady
from clustering_protocols.secrecy.identities import Card, fingerprint
from clustering_protocols.wire.states import OVER
from coterie_pages.desk_models import PartyRow
from coterie_pages.models import Screen
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.desk.responses import (
    Desk,
    desk_of,
    download,
    form_of,
    redirect_to,
    render_page,
)
from party_sdk.desk.tables.named_file import pasted_or_named
from party_sdk.home.clock import now
from party_sdk.home.identities import OwnIdentity
from party_sdk.party.party_index import stored_parties
from party_sdk.supervisor.orders import (
    Order,
    OrderState,
    OrderStatus,
    PartyOrder,
    PendingQuestion,
    check_same_invitation,
    orders_in,
    place_order,
)

_REFRESH_SECONDS: Final = 2  # while a party waits or runs
_FINAL_STATES: Final = frozenset({*OVER, "forgotten", "left"})
_ORDER: Final = {"asks": 0, "runs": 1, "ended": 2}


def post_invitation(request: Request) -> Response:
    """Store an invitation as an order without a table, and redirect to the party."""
    desk = desk_of(request)
    text = pasted_or_named(form_of(request), "invitation", desk.tables)
    invitation = Invitation.parse(text)
    _order_invitation(desk, invitation)
    return redirect_to(request, f"/parties/{invitation.session}/{invitation.slot}")


def _order_invitation(desk: Desk, invitation: Invitation) -> None:
    party_order = PartyOrder(desk.home, invitation.session, invitation.slot)
    order = Order(invitation=str(invitation))
    if party_order.exists:
        check_same_invitation(party_order, invitation)
        stored_order, status = party_order.order(), party_order.status()
        is_same = stored_order.invitation == order.invitation
        if is_same or status.state is OrderState.COMPLETED:
            return
        if party_order.stored.has_joined and not status.is_over:
            return  # the party has joined the session already
        changes = {"invitation": order.invitation, "withdrawn": None}
        order = stored_order.model_copy(update=changes)
    place_order(desk.home, order)


def get_parties(request: Request) -> Response:
    """Show the parties of this home; an invitation that was rejected is shown again."""
    form = form_of(request)
    desk = desk_of(request)
    rows = sorted(_rows(desk.home), key=lambda row: _ORDER[row.group])
    trouble = desk.background.trouble
    own = desk.own_home.institution()
    model = Screen(
        "desk/parties.html.j2",
        institution="" if own is None else own.name,
        fingerprint="" if own is None else fingerprint(own.key),
        known={
            name: fingerprint(key)
            for name, key in desk.own_home.trusted_institutions.keys_by_name().items()
        },
        rows=tuple(rows),
        invitation="\n".join(form.get_all("invitation")),
        path="".join(form.get_all("file")) * ("invitation" in form.fields),
        trouble="" if trouble is None else trouble.detail,
        remedy="" if trouble is None else trouble.remedy,
        now=now(),
    )
    is_active = any(row.group != "ended" for row in rows)
    # a refresh replaces only elements that have changed, so typed text is not lost
    return render_page(
        request,
        model,
        seconds=_REFRESH_SECONDS if is_active else 0,
        waits=any(row.group == "asks" for row in rows),
    )


def _rows(home: Path) -> Iterator[PartyRow]:
    rows = {}
    for party in stored_parties(home):
        is_over = party.state in _FINAL_STATES
        begun = "The command line began it; it continues here with a table."
        rows[party.session, party.slot] = PartyRow(
            session=party.session,
            slot=party.slot,
            title=party.title,
            state=party.state,
            group="ended" if is_over else "asks",
            sentence="" if is_over else begun,
        )
    for order in orders_in(home):
        # the status is read first, so a question may be newer
        status, question = order.status(), order.question()
        has_table = order.order().table is not None
        asks = status.state is OrderState.WAITING or question is not None
        group = "asks" if asks or not has_table else "runs"
        rows[order.session, order.slot] = PartyRow(
            session=status.session,
            slot=status.slot,
            title=status.title,
            protocol=status.protocol,
            state=status.state.value,
            group="ended" if status.is_over else group,
            sentence=_describe_status(status, question, has_table=has_table),
            since=status.changed_at,
        )
    yield from (rows[key] for key in sorted(rows))


def _describe_status(
    status: OrderStatus, question: PendingQuestion | None, *, has_table: bool
) -> str:
    if status.trouble is not None:
        return f"{status.trouble.headline}: {status.trouble.detail}"
    if not status.is_over and not has_table:
        return "Read the terms, and name your table."
    if question is not None:
        return question.sentence
    if status.outage_since is not None:
        return "The analyst cannot answer now; it is tried again."
    if status.awaited:
        return f"Waiting for {', '.join(status.awaited)}."
    return "The labels are ready." if status.state is OrderState.COMPLETED else ""


def post_card(request: Request) -> Response:
    """Show the fingerprint of a card, or trust the card if the form confirms it."""
    desk, form = desk_of(request), form_of(request)
    text = pasted_or_named(form, "card", desk.tables)
    card, trusted = Card.read(text.encode()), desk.own_home.trusted_institutions
    trusted.check_key(card.name, card.key)
    if not form.get("trust"):
        key = fingerprint(card.key)
        page = Screen("desk/card.html.j2", name=card.name, fingerprint=key, card=text)
        return render_page(request, page)
    trusted.trust(card)
    return redirect_to(request, "/")


def post_name(request: Request) -> Response:
    """Name this home's institution; the name is final, because others come to trust it."""
    OwnIdentity(desk_of(request).home).create(form_of(request).get("name").strip())
    return redirect_to(request, "/")


def get_card(request: Request) -> Response:
    """Return this institution's card, a file to hand to coordinators and other parties."""
    own = desk_of(request).own_home.institution()
    if own is None or not own.name:
        raise NotReady("This institution has no name yet: give it on the first page.")
    card = own.card.model_dump_json().encode()
    return download(card, f"{own.name}.card.json", "application/json")
