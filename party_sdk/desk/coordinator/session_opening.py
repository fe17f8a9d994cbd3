"""A session is opened: a form, its terms as parties will see them, and invitations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.states import SlotState
from coterie_pages.desk_models import SlotLine
from coterie_pages.models import Banner, FormField, Screen
from coterie_pages.views.terms_sheet import sheet_of
from party_sdk.advice import describe_runs
from party_sdk.coordinator.coordinator import Coordinator, DrawnTerms
from party_sdk.coordinator.letters import letter, write_letters
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.desk.coordinator.context import (
    ABOVE,
    parse_number,
    pass_coordinator,
    session_in,
    session_named,
)
from party_sdk.desk.coordinator.draft_fields import page_of
from party_sdk.desk.coordinator.drafts import SCREENS, Draft, DraftRequest, fill_form
from party_sdk.desk.responses import Form, desk_of, form_of, query_of, render_page
from party_sdk.home.clock import now
from party_sdk.home.files import private_folder

NEW: Final = f"{ABOVE}/new"
_CHANGED: Final = Banner(
    text="Nothing was opened: a file has changed since the terms were shown.",
    remedy="These are the terms as they are now.",
    good=False,
)


@pass_coordinator
def get_new(request: Request, coordinator: Coordinator) -> Response:
    """Show the first screen of a new session, filled with what the address says."""
    form = query_of(request)
    earlier = _earlier(form, coordinator)
    if earlier is not None:
        form = fill_form(earlier, coordinator.trusted_institutions.names())
    draft = Draft(form, desk_of(request).tables, earlier)
    return render_page(request, page_of(draft, coordinator.trusted_institutions, 1))


@pass_coordinator
def post_new(request: Request, coordinator: Coordinator) -> Response:
    """Go on with what was typed: to a screen, to the terms, or to an open session."""
    form = form_of(request)
    draft = Draft(form, desk_of(request).tables, _earlier(form, coordinator))
    do, screen = form.one("do"), form.one("screen")
    if do.startswith("to-"):
        screen = do.removeprefix("to-")
    number = int(screen) if screen in {"1", "2", "3"} else len(SCREENS)
    if do not in {"next", "review", "open"}:
        return _form_page(request, coordinator, draft, number)
    if do != "next":
        number = len(SCREENS)
    asked = draft.to_request(coordinator.trusted_institutions)
    if wrong := draft.wrong_screen(number):
        return _form_page(request, coordinator, draft, wrong)
    if number < len(SCREENS) or asked is None:
        onward = Draft(form, draft.tables, draft.earlier)
        return _form_page(request, coordinator, onward, number + 1)
    try:
        drawn = _draw_terms(coordinator, draft, asked)
    except InvalidParameters as error:
        draft.note(error, "")
        wrong = draft.wrong_screen(number) or number
        return _form_page(request, coordinator, draft, wrong)
    hidden = (
        *draft.hidden(0),
        *((name, form.one(name)) for name in ("from", "id") if form.one(name)),
        ("drawn", drawn.session),
        ("seed", str(drawn.request.seed)),
        ("digest", digest(drawn.terms)),
    )
    changed = form.one("digest") != digest(drawn.terms)
    opening = form.one("do") == "open"
    folder, path, wrong_folder = form.one("folder").strip(), None, ""
    if opening and folder and not changed:
        try:
            path = writable(desk_of(request).tables, folder)
        except InvalidParameters as error:
            wrong_folder = error.detail
    if not opening or changed or wrong_folder:
        field = folder_field(folder, str(desk_of(request).tables), wrong_folder)
        page = _review(request, coordinator, drawn, hidden, asked, field)
        notice = _CHANGED if opening and changed else None
        return render_page(request, page, notice=notice)
    opened = coordinator.open_session(drawn)
    return invitations_page(request, opened, opened.invite(), path)


def _drawn_before(form: Form) -> dict[str, Any]:
    """Return id and seed of the terms that were shown before; nothing the first time."""
    if not form.one("drawn"):
        return {}
    return {
        "session_id": form.one("drawn"),
        "seed": parse_number(form.one("seed"), "seed", 0),
    }


def _draw_terms(
    coordinator: Coordinator, draft: Draft, asked: DraftRequest
) -> DrawnTerms:
    said = {"session_id": draft.one("id") or None, **_drawn_before(draft.form)}
    return coordinator.draw_up(
        params=asked.params, layout=asked.layout, **asked.sections, **said
    )


def _earlier(form: Form, coordinator: Coordinator) -> Terms | None:
    """Return the terms of the session that a form repeats, if it repeats one."""
    named = form.one("from")
    return session_named(named, coordinator).terms if named else None


def _form_page(
    request: Request, coordinator: Coordinator, draft: Draft, number: int
) -> Response:
    page = page_of(draft, coordinator.trusted_institutions, number)
    general = draft.wrong.get("")
    notice = Banner(text=general, good=False) if general else None
    return render_page(request, page, notice=notice)


def _review(
    request: Request,
    coordinator: Coordinator,
    drawn: DrawnTerms,
    hidden: tuple[tuple[str, str], ...],
    asked: DraftRequest,
    folder: FormField,
) -> Screen:
    desk = desk_of(request)
    terms = read_terms(drawn.terms)
    names = coordinator.trusted_institutions.names()
    if terms.identities.coordinator is not None:
        names.setdefault(terms.identities.coordinator, "you")
    known = desk.connection.known
    url = "" if known is None else known.url
    sheet = sheet_of(drawn.terms, terms, names, url=url)
    runs = asked.sections["evaluation"]
    return Screen(
        "desk/review.html.j2",
        sheet,
        hidden=hidden,
        cost="" if runs is None else describe_runs(asked.params, asked.layout, runs),
        left_out=asked.left_out,
        join_by=now() + timedelta(seconds=terms.deadlines.recruiting),
        folder=folder,
    )


def writable(tables: Path, folder: str) -> Path:
    """Return the folder in which invitations are written; it is made where it lacks.

    Raises InvalidParameters if it cannot be.
    """
    return private_folder(tables / Path(folder).expanduser())


def invitations_page(
    request: Request,
    opened: CoordinatedSession,
    invitations: Mapping[str, str],
    folder: Path | None,
) -> Response:
    """Show invitations this once, or which files of a folder hold them."""
    terms = opened.terms
    if folder is not None:
        write_letters(folder, terms, invitations)
    page = Screen(
        "desk/invitations.html.j2",
        session=opened.id,
        title=terms.title,
        made=[
            {
                "slot": slot,
                "title": terms.layout.slot(slot).title,
                "invitation": invitation,
                "letter": letter(terms, slot),
            }
            for slot, invitation in invitations.items()
        ],
        folder="" if folder is None else str(folder),
    )
    return render_page(request, page)


@pass_coordinator
def get_inviting(request: Request, coordinator: Coordinator) -> Response:
    """Show for which free places new invitations may be made."""
    return _page(request, session_in(request, coordinator))


@pass_coordinator
def post_inviting(request: Request, coordinator: Coordinator) -> Response:
    """Make new invitations for the places that were ticked; their earlier ones end."""
    form = form_of(request)
    opened = session_in(request, coordinator)
    slots, folder = form.all("slot"), form.one("folder").strip()
    if not slots:
        return _page(request, opened, "Tick a place.")
    try:
        path = writable(desk_of(request).tables, folder) if folder else None
    except InvalidParameters as error:
        return _page(request, opened, wrong_folder=error.detail)
    return invitations_page(request, opened, opened.invite(list(slots)), path)


def _page(
    request: Request,
    opened: CoordinatedSession,
    wrong: str = "",
    wrong_folder: str = "",
) -> Response:
    terms, status = opened.terms, opened.status()
    free = tuple(
        SlotLine(
            name=slot.name,
            title=terms.layout.slot(slot.name).title,
            row=str(slot.row + 1),
            column=str(slot.column + 1),
        )
        for slot in status.slots
        if slot.state is not SlotState.JOINED
    )
    page = Screen(
        "desk/inviting.html.j2",
        session=opened.id,
        title=terms.title,
        free=free,
        folder=folder_field(
            form_of(request).one("folder"), str(desk_of(request).tables), wrong_folder
        ),
    )
    notice = Banner(text=wrong, good=False) if wrong else None
    return render_page(request, page, notice=notice)


def folder_field(value: str, tables: str, wrong: str) -> FormField:
    """Return the field that names the folder for invitations."""
    return FormField(
        name="folder",
        label="A folder for the invitations",
        hint="Each goes into a file that you alone can read, with a letter to its party. "
        f"Relative paths start at {tables}. Without one they are shown, "
        "once.",
        value=value,
        wrong=wrong,
    )
