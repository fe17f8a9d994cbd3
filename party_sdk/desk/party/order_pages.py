"""An order at work: what it asks is answered, and what has ended is tried again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, NotReady
from clustering_protocols.terms.agreements import Seat
from coterie_pages.models import Banner, Screen, TermsSheet
from coterie_pages.pages import assessment, page
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.table_choice import limit_in
from party_sdk.desk.responses import bad, file, form_of, render_page, to
from party_sdk.home.clock import now
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.home.policy_files import read_policy
from party_sdk.party.leave import has_left
from party_sdk.party.roster import Roster
from party_sdk.supervisor import PendingQuestion, QuestionKind, place_order

_SECONDS: Final = 1  # after which an order that continues is shown anew: it is near
_LONGEST: Final = 200


def at_work(
    request: Request,
    kept: AddressedParty,
    notice: Banner | None = None,
) -> Response:
    """Show where an order stands; :class:`NotReady` if there is none."""
    files, folder = kept.files, kept.files.stored
    order, question, status = files.order(), files.question(), files.status()
    trouble = status.trouble
    members, number = _members(kept, question)
    model = Screen(
        "desk/order.html.j2",
        title=kept.title(),
        status=status,
        question=question,
        consent=folder.consents.given,
        withdrawn_at=folder.consents.withdrawn_at,
        limit="" if trouble is None else limit_in(f"{trouble.detail} {trouble.remedy}"),
        now=now(),
        members=members,
        safety_number=number,
        table="" if order.table is None else Path(order.table.path).name,
        for_good=folder.has_joined and has_left(folder),
        compares_runs=kept.compares_runs,
    )
    # what somebody reads or ticks stays where it is
    waits = question is not None
    seconds = 0 if status.is_over or waits else _SECONDS
    return render_page(request, model, notice=notice, seconds=seconds, waits=waits)


def _members(
    kept: AddressedParty, question: PendingQuestion | None
) -> tuple[tuple[Seat, ...], str]:
    """Return who takes part and the number to compare, once all have joined."""
    if question is not None and question.kind is QuestionKind.SAFETY_NUMBER:
        return question.members, question.safety_number
    agreement = kept.files.stored.agreement
    if agreement is None:
        return (), ""
    roster = Roster.of(agreement, TrustedInstitutions(kept.desk.home), kept.slot)
    return tuple(roster.seats), roster.safety_number


def post_answer(request: Request) -> Response:
    """Decide what the order asks: the very question that was shown."""
    kept, form = kept_of(request), form_of(request)
    try:
        if (answer := form.one("answer")) not in {"yes", "no"}:
            raise NotReady("Say yes or no.")
        reason = form.one("reason").strip()[:_LONGEST]
        kept.files.answer(form.one("question"), yes=answer == "yes", reason=reason)
    except CoterieError as error:
        return at_work(request, kept, bad(error))
    return to(request, kept.address)


def post_withdraw_consent(request: Request) -> Response:
    """Take back the yes to the sheet: the next contribution is asked about."""
    kept = kept_of(request)
    try:
        kept.desk.own_home.withdraw_consent(kept.session, kept.slot)
    except CoterieError as error:
        return at_work(request, kept, bad(error))
    return to(request, kept.address)


def post_again(request: Request) -> Response:
    """Place an order again as it was."""
    kept = kept_of(request)
    try:
        order = kept.files.order().model_copy(update={"withdrawn": None})
        place_order(kept.desk.home, order)
    except CoterieError as error:
        return at_work(request, kept, bad(error))
    return to(request, kept.address)


def get_terms(request: Request) -> Response:
    """Show the terms, to be accepted."""
    return _page(request, kept_of(request))


def get_sheet(request: Request) -> Response:
    """Return the page to sign, with its annex, as a file that needs nothing else."""
    kept = kept_of(request)
    return file(
        page(_sheet(kept)).encode(), f"{kept.file_stem}-terms.html", "text/html"
    )


def get_assessment(request: Request) -> Response:
    """Return a data protection impact assessment, filled from the terms."""
    kept = kept_of(request)
    text = assessment(_sheet(kept)).encode()
    return file(text, f"{kept.file_stem}-assessment.md", "text/markdown")


def _sheet(kept: AddressedParty) -> TermsSheet:
    here = kept.desk.own_home
    return here.sheet(here.offer(str(kept.invitation)))


def post_terms(request: Request) -> Response:
    """Accept the sheet that was shown."""
    kept, form = kept_of(request), form_of(request)
    if kept.has_accepted:
        return to(request, kept.address)
    try:
        here, invitation = kept.desk.own_home, str(kept.invitation)
        policy = read_policy(kept.desk.home)
        policy = here.accept(invitation, policy, sheet=form.one("sheet"))
        with here.join(invitation, policy):
            pass  # it is on this disk now
    except CoterieError as error:
        return _page(request, kept, bad(error))
    return to(request, kept.address)


def post_decline(request: Request) -> Response:
    """End the order, with a reason that the others read where the slot is free."""
    kept, form = kept_of(request), form_of(request)
    try:
        kept.files.withdraw(form.one("reason").strip())
    except CoterieError as error:
        # it is withdrawn all the same: what is said is why the others do not know
        return at_work(request, kept, bad(error))
    return to(request, kept.address)


def _page(
    request: Request, kept: AddressedParty, notice: Banner | None = None
) -> Response:
    model = Screen("desk/terms.html.j2", _sheet(kept), joined=kept.has_accepted)
    return render_page(request, model, notice=notice)
