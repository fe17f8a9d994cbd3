"""The start page: the parties of this home, and a form for a new invitation."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import NotReady
from clustering_protocols.secrecy.identities import Card, fingerprint
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
from party_sdk.party.party_index import all_parties
from party_sdk.supervisor.orders import (
    Order,
    OrderState,
    PartyOrder,
    check_same_invitation,
    place_order,
)

_REFRESH_SECONDS: Final = 2  # while a party waits or runs


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
    rows = tuple(all_parties(desk.home))
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
        rows=rows,
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
