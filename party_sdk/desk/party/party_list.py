"""The first page: the parties of a home, and a form that takes an invitation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    InvalidParameters,
    NotReady,
)
from clustering_protocols.secrecy.identities import Card, fingerprint
from clustering_protocols.wire.states import OVER
from coterie_pages.desk_models import PartyRow
from coterie_pages.models import Banner, Screen
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.desk.responses import Desk, bad, desk_of, file, form_of, render_page, to
from party_sdk.desk.tables.named_file import pasted_or_named
from party_sdk.home.clock import now
from party_sdk.home.identities import OwnIdentity
from party_sdk.party.party_index import KeptParty, kept_parties
from party_sdk.supervisor import (
    Order,
    OrderState,
    OrderStatus,
    PartyOrder,
    orders_in,
    place_order,
)
from party_sdk.supervisor.orders import check_same_invitation

_SECONDS: Final = 2  # after which what waits and what runs is shown anew
_OVER: Final = frozenset({*OVER, "forgotten", "left"})
_ORDER: Final = {"asks": 0, "runs": 1, "ended": 2}


def get_parties(request: Request) -> Response:
    """Show the parties of this home."""
    return show_parties(request)


def post_invitation(request: Request) -> Response:
    """Keep an invitation as an order without a table, and lead to its terms."""
    desk, form = desk_of(request), form_of(request)
    try:
        text = pasted_or_named(form, "invitation", desk.tables)
        invitation = Invitation.parse(text)
        _keep(desk, invitation)
    except (GuardRefused, InvalidParameters, NotReady) as error:
        return show_parties(request, bad(error))
    return to(request, f"/parties/{invitation.session}/{invitation.slot}")


def _keep(desk: Desk, invitation: Invitation) -> None:
    """Place an order for an invitation; a newer one takes the earlier one's place."""
    files = PartyOrder(desk.home, invitation.session, invitation.slot)
    order = Order(invitation=str(invitation))
    if files.exists:
        check_same_invitation(files, invitation)
        kept, status = files.order(), files.status()
        is_same = kept.invitation == order.invitation
        if is_same or status.state is OrderState.COMPLETED:
            return
        if files.stored.has_joined and not status.is_over:
            return  # it takes part already: no later invitation changes that
        again = {"invitation": order.invitation, "withdrawn": None}
        order = kept.model_copy(update=again)
    place_order(desk.home, order)


def show_parties(request: Request, notice: Banner | None = None) -> Response:
    """Show the parties of this home, below what was just done."""
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
            for name, key in desk.own_home.trusted_institutions.read().items()
        },
        rows=tuple(rows),
        trouble="" if trouble is None else trouble.detail,
        remedy="" if trouble is None else trouble.remedy,
        now=now(),
    )
    goes_on = any(row.group != "ended" for row in rows)
    # what somebody types stays: a page with a form is shown anew only where it moves
    return render_page(
        request,
        model,
        notice=notice,
        seconds=_SECONDS if goes_on else 0,
        waits=any(row.group == "asks" for row in rows),
    )


def _rows(home: Path) -> Iterator[PartyRow]:
    found = {
        (each.session, each.slot): _build_stored_row(each)
        for each in kept_parties(home)
    }
    for order in orders_in(home):
        found[order.session, order.slot] = _build_order_row(order)
    yield from (found[key] for key in sorted(found))


def _build_stored_row(kept: KeptParty) -> PartyRow:
    """Return a party of the command line."""
    over = kept.state in _OVER
    return PartyRow(
        session=kept.session,
        slot=kept.slot,
        title=kept.title,
        state=kept.state,
        group="ended" if over else "asks",
        said=""
        if over
        else "The command line began it; it continues here with a table.",
    )


def _build_order_row(files: PartyOrder) -> PartyRow:
    status = files.status()
    return PartyRow(
        session=status.session,
        slot=status.slot,
        title=status.title,
        protocol=status.protocol,
        state=status.state.value,
        group="ended" if status.is_over else _group(status, files),
        said=_describe_status(status, files),
        since=status.changed_at,
    )


def _group(status: OrderStatus, files: PartyOrder) -> str:
    # a question is kept a moment before the status tells of it
    is_asked = status.state is OrderState.WAITING or files.question() is not None
    has_table = files.order().table is not None
    return "asks" if is_asked or not has_table else "runs"


def _describe_status(status: OrderStatus, files: PartyOrder) -> str:
    if status.trouble is not None:
        return f"{status.trouble.headline}: {status.trouble.detail}"
    question = files.question()
    if not status.is_over and files.order().table is None:
        return "Read the terms, and name your table."
    if question is not None:
        return question.sentence
    if status.outage_since is not None:
        return "The analyst cannot be reached; it is asked again."
    if status.awaited:
        return f"Waiting for {', '.join(status.awaited)}."
    return "Labels are there." if status.state is OrderState.COMPLETED else ""


def post_card(request: Request) -> Response:
    """Show whose card this is; trust it where somebody has compared the key."""
    desk, form = desk_of(request), form_of(request)
    try:
        text = pasted_or_named(form, "card", desk.tables)
        card = Card.read(text.encode())
        desk.own_home.trusted_institutions.check(card.name, card.key)
        if not form.one("trust"):
            key = fingerprint(card.key)
            return render_page(
                request,
                Screen("desk/card.html.j2", name=card.name, fingerprint=key, card=text),
            )
        desk.own_home.trusted_institutions.trust(card)
    except CoterieError as error:
        return show_parties(request, bad(error))
    return to(request, "/")


def post_name(request: Request) -> Response:
    """Give the institution of this home its name: once, as others trust it by that."""
    name = form_of(request).one("name").strip()
    try:
        OwnIdentity(desk_of(request).home).make(name)
    except CoterieError as error:
        return show_parties(request, bad(error))
    return to(request, "/")


def get_card(request: Request) -> Response:
    """Return the card of this institution, to hand to coordinators and parties."""
    own = desk_of(request).own_home.institution()
    if own is None or not own.name:
        raise NotReady("This institution has no name yet: give it on the first page.")
    card = own.card.model_dump_json().encode()
    return file(card, f"{own.name}.card.json", "application/json")
