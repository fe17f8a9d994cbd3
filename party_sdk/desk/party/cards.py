"""Cards of other institutions: read, compared, and trusted."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError
from clustering_protocols.secrecy.identities import Card, fingerprint
from coterie_pages.models.desk import CardPage
from party_sdk.desk.party.party_list import show_parties
from party_sdk.desk.responses import bad, desk_of, form_of, render_page, to
from party_sdk.desk.tables.named_file import pasted_or_named


def post_card(request: Request) -> Response:
    """Show whose card this is; trust it where somebody has compared the key."""
    desk, form = desk_of(request), form_of(request)
    try:
        text = pasted_or_named(form, "card", desk.tables)
        card = Card.read(text.encode())
        desk.own_home.acquaintances.check(card.name, card.key)
        if not form.one("trust"):
            key = fingerprint(card.key)
            return render_page(
                request, CardPage(name=card.name, fingerprint=key, card=text)
            )
        desk.own_home.acquaintances.trust(card)
    except CoterieError as error:
        return show_parties(request, bad(error))
    return to(request, "/")
