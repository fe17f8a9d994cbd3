"""Pages about an order: its status, its questions, and the terms of its session."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, NotReady
from clustering_protocols.terms.agreements import Seat
from clustering_protocols.wire.states import SessionState
from coterie_pages.models import Banner, Screen
from coterie_pages.pages import render_assessment, render_html
from party_sdk.desk.party.addressed_party import AddressedParty, requested_party
from party_sdk.desk.party.table_choice import choice_named_in
from party_sdk.desk.responses import (
    Form,
    banner_of,
    download,
    form_of,
    redirect_to,
    render_page,
)
from party_sdk.home.clock import now
from party_sdk.home.policy_files import read_policy
from party_sdk.party.roster import Roster
from party_sdk.supervisor.orders import QuestionKind, place_order

_REFRESH_SECONDS: Final = 1  # requests to the same machine are cheap
_MAX_REASON_LENGTH: Final = 200


def render_order_page(
    request: Request,
    party: AddressedParty,
    notice: Banner | None = None,
) -> Response:
    """Show the status of a party's order; raise :class:`NotReady` if it has none."""
    party_order, stored = party.party_order, party.stored
    table, question = party_order.order().table, party_order.question()
    status, agreement = party_order.status(), stored.agreement
    trouble = status.trouble
    members: tuple[Seat, ...] = ()
    safety_number = ""
    if question is not None and question.kind is QuestionKind.SAFETY_NUMBER:
        members, safety_number = question.members, question.safety_number
    elif agreement is not None:
        trusted = party.home.trusted_institutions
        roster = Roster.of(agreement, trusted, party.slot)
        members, safety_number = roster.seats, roster.safety_number
    is_cancelled = (
        stored.exists and stored.load_identity().ended == SessionState.CANCELLED
    )
    model = Screen(
        "desk/order.html.j2",
        title=party.title,
        status=status,
        question=question,
        consent=stored.consents.current,
        withdrawn_at=stored.consents.withdrawn_at,
        limit=""
        if trouble is None
        else choice_named_in(f"{trouble.detail} {trouble.remedy}"),
        now=now(),
        members=members,
        safety_number=safety_number,
        table="" if table is None else Path(table.path).name,
        for_good=is_cancelled or (stored.has_joined and stored.journal.left),
        compares_runs=party.compares_runs,
    )
    # do not refresh a question while somebody reads it
    waits = question is not None
    seconds = 0 if status.is_over or waits else _REFRESH_SECONDS
    return render_page(request, model, notice=notice, seconds=seconds, waits=waits)


def change_order(
    change: Callable[[AddressedParty, Form], object],
) -> Callable[[Request], Response]:
    """Turn a change of an order into a handler that redirects to the order's page."""

    @wraps(change)
    def handle(request: Request) -> Response:
        party = requested_party(request)
        try:
            change(party, form_of(request))
        except CoterieError as error:
            return render_order_page(request, party, banner_of(error))
        return redirect_to(request, party.address)

    return handle


@change_order
def post_answer(party: AddressedParty, form: Form) -> None:
    """Submit the operator's answer to the question that the page showed."""
    if (answer := form.get("answer")) not in {"yes", "no"}:
        raise NotReady("Say yes or no.")
    reason = form.get("reason").strip()[:_MAX_REASON_LENGTH]
    party.party_order.answer(form.get("question"), yes=answer == "yes", reason=reason)


@change_order
def post_withdraw_consent(party: AddressedParty, _: Form) -> None:
    """Withdraw consent to the terms sheet; the next contribution then needs approval."""
    party.home.withdraw_consent(party.session, party.slot)


@change_order
def post_again(party: AddressedParty, _: Form) -> None:
    """Place the party's order again, without changes."""
    order = party.party_order.order().model_copy(update={"withdrawn": None})
    place_order(party.desk.home, order)


@change_order
def post_decline(party: AddressedParty, form: Form) -> None:
    """Withdraw the order; if the slot is free, the others can read the reason."""
    # the order is withdrawn even if this raises because the others were not notified
    party.party_order.withdraw(form.get("reason").strip())


def get_terms(request: Request, notice: Banner | None = None) -> Response:
    """Show the terms sheet with a form to accept it."""
    party = requested_party(request)
    model = Screen("desk/terms.html.j2", party.sheet(), joined=party.has_accepted)
    return render_page(request, model, notice=notice)


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
    try:
        home, invitation = party.home, str(party.invitation)
        policy = read_policy(party.desk.home)
        policy = home.ask_consent(invitation, policy, sheet=form.get("sheet"))
        with home.join(invitation, policy):
            pass  # entering the context stores the party
    except CoterieError as error:
        return get_terms(request, banner_of(error))
    return redirect_to(request, party.address)
