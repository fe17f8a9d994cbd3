"""The terms of an invitation: read in words, and accepted risk by risk, or declined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.errors import CoterieError
from clustering_protocols.terms import read_terms
from coterie_pages.models.desk import OfferedTerms
from coterie_pages.models.frame import Notice
from party_sdk.desk.answers import bad, form_of, shown, to
from party_sdk.desk.kept import Kept, kept_of
from party_sdk.desk.working import at_work
from party_sdk.offers import offered_sheet, own_institution
from party_sdk.policy_files import read_policy


def get_terms(request: Request) -> Response:
    """Show the terms, and a tick for each risk that nobody has accepted yet."""
    return _page(request, kept_of(request))


def post_terms(request: Request) -> Response:
    """Accept the risks that were ticked: all of them, or nothing is accepted."""
    kept, form = kept_of(request), form_of(request)
    if kept.has_accepted:
        return to(request, kept.address)
    policy = read_policy(kept.desk.home)
    ticked = form.all("risk")
    left = policy.not_accepted(kept.terms())
    missed = [code for code in left if code not in ticked]
    if missed:
        said = Notice(
            text="Nothing was accepted: a risk has no tick.",
            remedy="Tick each risk that you have read and accept, or decline.",
            good=False,
        )
        return _page(request, kept, said, missed=missed)
    try:
        with kept.member(policy.accepting(left)):
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
    kept: Kept,
    notice: Notice | None = None,
    *,
    missed: Sequence[str] = (),
) -> Response:
    home, text = kept.desk.home, kept.text()
    sheet = offered_sheet(kept.invitation, text, home, own_institution(home))
    left = read_policy(home).not_accepted(read_terms(text))
    said: dict[str, Any] = dict(sheet)
    model = OfferedTerms(
        **said,
        accepted=tuple(each.code for each in sheet.risks if each.code not in left),
        joined=kept.has_accepted,
        missed=tuple(missed),
    )
    return shown(request, model, notice=notice)
