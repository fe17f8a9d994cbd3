"""Pages about an order: its status, its questions, and the terms of its session."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import NotReady
from clustering_protocols.terms.agreements import Seat
from clustering_protocols.terms.session_risks import CHOICES
from coterie_pages.models import Screen
from coterie_pages.pages import render_assessment, render_html
from party_sdk.desk.party.addressed_party import AddressedParty, requested_party
from party_sdk.desk.responses import download, form_of, redirect_to, render_page
from party_sdk.home.clock import now
from party_sdk.home.policy_files import read_policy
from party_sdk.party.roster import Roster
from party_sdk.supervisor.orders import QuestionKind, place_order

_REFRESH_SECONDS: Final = 1  # requests to the same machine are cheap
_MAX_REASON_LENGTH: Final = 200


def render_order_page(request: Request, party: AddressedParty) -> Response:
    """Show the status of a party's order; raise :class:`NotReady` if it has none."""
    table, question = party.order().table, party.question()
    status, stored = party.status(), party.stored
    agreement = stored.agreement
    trouble = status.trouble
    members: tuple[Seat, ...] = ()
    safety_number = ""
    if question is not None and question.kind is QuestionKind.SAFETY_NUMBER:
        members, safety_number = question.members, question.safety_number
    elif agreement is not None:
        trusted = party.desk.own_home.trusted_institutions
        roster = Roster.of(agreement, trusted, party.slot)
        members, safety_number = roster.seats, roster.safety_number
    problem = "" if trouble is None else f"{trouble.detail} {trouble.remedy}"
    model = Screen(
        "desk/order.html.j2",
        title=party.title,
        status=status,
        question=question,
        consent=stored.consent,
        limit=next((name for name in CHOICES if name in problem), ""),
        now=now(),
        members=members,
        safety_number=safety_number,
        table="" if table is None else Path(table.path).name,
        for_good=party.has_ended,
        previews_runs=party.previews_runs,
    )
    # do not refresh a question while somebody reads it
    waits = question is not None
    seconds = 0 if status.is_over or waits else _REFRESH_SECONDS
    return render_page(request, model, seconds=seconds, waits=waits)


def post_answer(request: Request) -> Response:
    """Submit the operator's answer to the question that the page showed."""
    party, form = requested_party(request), form_of(request)
    if (answer := form.get("answer")) not in {"yes", "no"}:
        raise NotReady("Answer yes or no.")
    reason = form.get("reason").strip()[:_MAX_REASON_LENGTH]
    party.answer(form.get("question"), yes=answer == "yes", reason=reason)
    return redirect_to(request, party.address)


def post_withdraw_consent(request: Request) -> Response:
    """Withdraw consent to the terms sheet; the next contribution then needs approval."""
    party = requested_party(request)
    party.desk.own_home.withdraw_consent(party.session, party.slot)
    return redirect_to(request, party.address)


def post_again(request: Request) -> Response:
    """Place the party's order again, without changes."""
    party = requested_party(request)
    place_order(party.home, party.order().model_copy(update={"withdrawn": None}))
    return redirect_to(request, party.address)


def post_decline(request: Request) -> Response:
    """Withdraw the order; before the party joins, the coordinator reads the reason."""
    party = requested_party(request)
    if not party.exists:  # the command line began it
        party.save_order(party.current_order)
    # the order is withdrawn even if this raises because the others were not notified
    party.withdraw(form_of(request).get("reason").strip())
    return redirect_to(request, party.address)


def get_terms(request: Request) -> Response:
    """Show the terms sheet with a form to accept it."""
    party = requested_party(request)
    model = Screen("desk/terms.html.j2", party.sheet(), joined=party.has_accepted)
    return render_page(request, model)


def get_sheet(request: Request) -> Response:
    """Return the terms sheet with its annex as a self-contained HTML file for signing."""
    party = requested_party(request)
    content = render_html(party.sheet()).encode()
    return download(content, f"{party.file_stem}-terms.html", "text/html")


def get_assessment(request: Request) -> Response:
    """Return a data protection impact assessment in Markdown, filled in from the terms."""
    party = requested_party(request)
    text = render_assessment(party.sheet()).encode()
    return download(text, f"{party.file_stem}-assessment.md", "text/markdown")


def post_terms(request: Request) -> Response:
    """Accept the terms sheet that the page showed, and store the party in the home."""
    party, form = requested_party(request), form_of(request)
    if party.has_accepted:
        return redirect_to(request, party.address)
    home, invitation = party.desk.own_home, str(party.invitation)
    policy = read_policy(party.home)
    policy = home.ask_consent(invitation, policy, sheet=form.get("sheet"))
    with home.join(invitation, policy):
        pass  # entering the context stores the party
    return redirect_to(request, party.address)
