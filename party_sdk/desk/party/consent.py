"""The terms of an invitation: read in words, and accepted risk by risk, or declined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError
from coterie_pages.models import TermsSheet
from coterie_pages.models.desk import OfferedTerms
from coterie_pages.models.frame import Banner
from coterie_pages.pages import assessment, page
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.order_pages import at_work, ticked_risks
from party_sdk.desk.responses import bad, file, form_of, render_page, to
from party_sdk.home.policy_files import read_policy


def get_terms(request: Request) -> Response:
    """Show the terms, and a tick for each risk that nobody has accepted yet."""
    return _page(request, kept_of(request))


def get_sheet(request: Request) -> Response:
    """Return the page to sign, with its annex, as a file that needs nothing else."""
    kept = kept_of(request)
    return file(page(_sheet(kept)).encode(), f"{_stem(kept)}-terms.html", "text/html")


def get_assessment(request: Request) -> Response:
    """Return a data protection impact assessment, filled from the terms."""
    kept = kept_of(request)
    text = assessment(_sheet(kept)).encode()
    return file(text, f"{_stem(kept)}-assessment.md", "text/markdown")


def _sheet(kept: AddressedParty) -> TermsSheet:
    here = kept.desk.own_home
    return here.sheet(here.offer(str(kept.invitation)))


def _stem(kept: AddressedParty) -> str:
    return f"{kept.session}-{kept.slot}"


def post_terms(request: Request) -> Response:
    """Accept the risks that were ticked: all of them, or nothing is accepted."""
    kept, form = kept_of(request), form_of(request)
    if kept.has_accepted:
        return to(request, kept.address)
    policy = read_policy(kept.desk.home)
    ticked = ticked_risks(form)
    left = policy.not_accepted(kept.terms())
    missed = [code for code in left if code not in ticked]
    if missed:
        said = Banner(
            text="Nothing was accepted: risks have no tick.",
            remedy="Tick each group of risks that you accept, or decline.",
            good=False,
        )
        return _page(request, kept, said, missed=missed)
    try:
        here, invitation = kept.desk.own_home, str(kept.invitation)
        with here.join(invitation, here.accept(invitation, policy.accept_risks(left))):
            pass  # it is on this disk now
    except CoterieError as error:
        return _page(request, kept, bad(error))
    return to(request, kept.address)


def post_decline(request: Request) -> Response:
    """End the order, with a reason that the others read where the slot is free."""
    kept, form = kept_of(request), form_of(request)
    try:
        kept.desk.orders.withdraw(kept.session, kept.slot, form.one("reason").strip())
    except CoterieError as error:
        # it is withdrawn all the same: what is said is why the others do not know
        return at_work(request, kept, bad(error))
    return to(request, kept.address)


def _page(
    request: Request,
    kept: AddressedParty,
    notice: Banner | None = None,
    *,
    missed: Sequence[str] = (),
) -> Response:
    here = kept.desk.own_home
    offer = here.offer(str(kept.invitation))
    sheet = here.sheet(offer)
    left = read_policy(here.path).not_accepted(offer.terms)
    said: dict[str, Any] = dict(sheet)
    model = OfferedTerms(
        **said,
        accepted=tuple(each.code for each in sheet.risks if each.code not in left),
        joined=kept.has_accepted,
        missed=tuple(missed),
    )
    return render_page(request, model, notice=notice)
