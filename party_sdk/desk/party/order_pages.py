"""An order at work: what it asks is answered, and what has ended is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import CoterieError, NotReady
from coterie_pages.models.frame import Banner
from party_sdk.application.asker import Answer
from party_sdk.desk.party.addressed_party import AddressedParty, kept_of
from party_sdk.desk.party.order_status import standing_of
from party_sdk.desk.responses import Form, bad, form_of, render_page, to

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
    """Show where an order stands."""
    model = standing_of(kept, missed=missed)
    # what somebody reads or ticks stays where it is
    waits = model.asked is not None
    seconds = 0 if model.over or waits else _SECONDS
    return render_page(request, model, notice=notice, seconds=seconds, waits=waits)


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
        kept.desk.orders.answer(
            kept.session,
            kept.slot,
            form.one("question"),
            yes,
            reason,
            rest=answer is Answer.ALL,
        )
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
        kept.desk.orders.place(order)
    except CoterieError as error:
        return at_work(request, kept, bad(error))
    return to(request, kept.address)
