"""Whose desk this is: the institution gets its name, and hands out its card."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, NotReady
from party_sdk.desk.party.party_list import show_parties
from party_sdk.desk.responses import bad, desk_of, file, form_of, to
from party_sdk.home.identities import OwnIdentity


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
