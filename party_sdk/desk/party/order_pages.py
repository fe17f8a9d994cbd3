"""An order at work: what it asks is answered, and what has ended is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.catalogue import find_risk
from clustering_protocols.common.errors import CoterieError, NotReady
from clustering_protocols.terms.agreements import Seat
from coterie_pages.desk_models import OfferedTerms, OrderPage
from coterie_pages.models import Banner, TermsSheet
from coterie_pages.pages import assessment, page
from coterie_pages.views.terms_sheet import show_risks
from party_sdk.application.asker import Answer
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.table_choice import limit_in
from party_sdk.desk.responses import Form, bad, file, form_of, render_page, to
from party_sdk.home.clock import now
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.home.policy_files import read_policy
from party_sdk.party.leave import has_left
from party_sdk.party.roster import Roster
from party_sdk.supervisor import PendingQuestion, QuestionKind, place_order

_SECONDS: Final = 1  # after which an order that continues is shown anew: it is near
_LONGEST: Final = 200
_ANSWERS: Final = {"yes": Answer.ALL, "once": Answer.ONCE, "no": Answer.NO}
_MISSED: Final = Banner(
    text="Nothing was accepted: risks have no tick.",
    remedy="Tick each group of risks that you accept, or say no.",
    good=False,
)


def at_work(
    request: Request,
    kept: AddressedParty,
    notice: Banner | None = None,
    *,
    missed: Sequence[str] = (),
) -> Response:
    """Show where an order stands; :class:`NotReady` if there is none.

    missed: risks without a tick in the form that was sent.
    """
    files, folder = kept.files, kept.files.folder
    order, question, status = files.order(), files.question(), files.status()
    trouble = status.trouble
    members, number = _members(kept, question)
    codes = () if question is None else question.risks
    model = OrderPage(
        title=kept.title(),
        status=status,
        question=question,
        consents=folder.consents,
        risks=show_risks({code: find_risk(code) for code in codes}),
        missed=tuple(missed),
        limit="" if trouble is None else limit_in(f"{trouble.detail} {trouble.remedy}"),
        now=now(),
        members=members,
        safety_number=number,
        table="" if order.table is None else Path(order.table.path).name,
        for_good=folder.has_joined and has_left(folder),
        compares_runs=kept.compares_runs,
        asks="everything" if order.confirm else "readable" * order.readable,
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
    agreement = kept.files.folder.agreement
    if agreement is None:
        return (), ""
    roster = Roster.of(agreement, TrustedInstitutions(kept.desk.home), kept.slot)
    return tuple(roster.seats), roster.safety_number


def ticked_risks(form: Form) -> list[str]:
    """Return the codes of the risks that were ticked: one tick stands for a level."""
    return " ".join(form.all("risk")).split()


def post_answer(request: Request) -> Response:
    """Decide what the order asks: the very question that was shown."""
    kept, form = kept_of(request), form_of(request)
    asked, answer = kept.files.question(), _ANSWERS.get(form.one("answer"))
    try:
        if answer is None:
            raise NotReady("Say yes or no.")
        yes = answer is not Answer.NO
        ticked = ticked_risks(form)
        missed = [code for code in asked.risks if code not in ticked] if asked else []
        if yes and missed:
            return at_work(request, kept, _MISSED, missed=missed)
        reason = form.one("reason").strip()[:_LONGEST]
        rest, question = answer is Answer.ALL, form.one("question")
        kept.files.answer(question, yes=yes, reason=reason, rest=rest)
    except CoterieError as error:
        return at_work(request, kept, bad(error))
    return to(request, kept.address)


def post_withdraw_consent(request: Request) -> Response:
    """Take back every yes to a kind of contribution: it is asked about again."""
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
    """Show the terms, and a tick for each risk that nobody has accepted yet."""
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
        kept.files.withdraw(form.one("reason").strip())
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
