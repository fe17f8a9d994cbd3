"""A session again: last quarter's terms, with all parties or without some."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.terms import Terms
from coterie_pages.models.desk_coordinator import RepetitionPage, SlotLine
from coterie_pages.models.fields import FormField
from coterie_pages.models.frame import Banner
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.coordinator.repetition import like
from party_sdk.desk.coordinator.context import SESSIONS, pass_coordinator, session_in
from party_sdk.desk.coordinator.session_opening import decide, drawn_before, hidden_of
from party_sdk.desk.responses import form_of, render_page


@pass_coordinator
def get_repeat(request: Request, coordinator: Coordinator) -> Response:
    """Show the form: a title, and who does not take part again."""
    opened = session_in(request, coordinator)
    return _page(request, opened.id, opened.terms, opened.terms.title)


@pass_coordinator
def post_repeat(request: Request, coordinator: Coordinator) -> Response:
    """Show the terms of the new session, and open it once they were shown."""
    opened = session_in(request, coordinator)
    form, terms = form_of(request), opened.terms
    title = form.one("title").strip()
    if form.one("do") not in {"review", "open"}:
        return _page(request, opened.id, terms, title, form.all("without"))
    try:
        asked: dict[str, Any] = like(terms, form.all("without"))
        asked["about"] = asked["about"].model_copy(update={"title": title})
        drawn = coordinator.draw_up(**asked, **drawn_before(form))
    except InvalidParameters as error:
        notice = Banner(text=error.detail, good=False)
        ticked = form.all("without")
        return _page(request, opened.id, terms, title, ticked, notice)
    hidden = tuple(hidden_of(form.fields, drawn))
    action = f"{SESSIONS}/{opened.id}/repeat"
    return decide(request, coordinator, drawn, hidden, None, action=action)


def _page(
    request: Request,
    session: str,
    terms: Terms,
    title: str,
    without: Any = (),
    notice: Banner | None = None,
) -> Response:
    page = RepetitionPage(
        session=session,
        title=FormField(name="title", label="Title", required=True, value=title),
        slots=tuple(
            SlotLine(
                name=slot.name,
                title=slot.title,
                row=str(slot.row + 1),
                column=str(slot.column + 1),
            )
            for slot in terms.layout.slots
        ),
        without=tuple(without),
    )
    return render_page(request, page, notice=notice)
