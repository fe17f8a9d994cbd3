"""Pages that open a session: the form, the review of the terms, and the invitations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols import session_terms
from clustering_protocols.common.errors import (
    InvalidParameters,
    NotFound,
    NotReady,
    SessionOver,
)
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.states import SlotState
from coterie_pages.desk_models import SlotLine
from coterie_pages.models import Banner, FormField, Screen
from coterie_pages.views.terms_sheet import sheet_of
from party_sdk.advice import describe_cost_of_runs
from party_sdk.coordinator.coordinator import Coordinator, DrawnTerms
from party_sdk.coordinator.letters import (
    compose_letter,
    prepare_letter_folder,
    write_letters,
)
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.desk.coordinator.context import (
    ABOVE,
    SESSIONS,
    find_session,
    parse_number,
    pass_coordinator,
    requested_session,
)
from party_sdk.desk.coordinator.draft_fields import build_screen
from party_sdk.desk.coordinator.drafts import SCREENS, Draft, fill_form
from party_sdk.desk.responses import (
    Form,
    desk_of,
    form_of,
    path_in,
    redirect_to,
    render_page,
)
from party_sdk.home.clock import now

NEW: Final = f"{ABOVE}/new"
_CHANGED: Final = Banner(
    text="Nothing was opened: a file has changed since the terms were shown.",
    remedy="These are the terms as they are now.",
)


@pass_coordinator
def get_new(request: Request, coordinator: Coordinator) -> Response:
    """Show the first screen of the form, filled in from the query string."""
    form = form_of(request)
    if form.get("do") == "open":  # the session may be open: only its review repeats it
        raise NotReady("Go back to the terms, and open the session from there.")
    terms = _repeated_terms(form, coordinator)
    if terms is not None and request.method == "GET":
        form = fill_form(terms, coordinator.trusted_institutions.names_by_key())
    draft = Draft(form, desk_of(request).tables, terms)
    return _form_page(request, coordinator, draft, 1)


@pass_coordinator
def post_new(request: Request, coordinator: Coordinator) -> Response:
    """Show another screen of the form or the review of the terms, or open the session."""
    form = form_of(request)
    draft = Draft(form, desk_of(request).tables, _repeated_terms(form, coordinator))
    do, screen = form.get("do"), form.get("screen")
    if do.startswith("to-"):
        screen = do.removeprefix("to-")
    number = int(screen) if screen in {"1", "2", "3"} else len(SCREENS)
    if do not in {"next", "review", "open"}:
        return _form_page(request, coordinator, draft, number)
    if do != "next":
        number = len(SCREENS)
    draft_request = draft.to_request(coordinator.trusted_institutions)
    if wrong := draft.first_screen_with_error(number):
        return _form_page(request, coordinator, draft, wrong)
    if number < len(SCREENS) or draft_request is None:
        next_draft = Draft(form, draft.tables, draft.repeated)
        return _form_page(request, coordinator, next_draft, number + 1)
    try:
        identity: dict[str, Any] = {"session_id": draft.get("id") or None}
        if form.get("drawn"):  # write the reviewed terms again
            seed = parse_number(form.get("seed"), "seed", 0)
            identity = {"session_id": form.get("drawn"), "seed": seed}
        drawn_terms = coordinator.draw_up(**draft_request, **identity)
    except InvalidParameters as error:
        draft.add_error(error, "")
        wrong = draft.first_screen_with_error(number) or number
        return _form_page(request, coordinator, draft, wrong)
    hidden_fields = (
        *draft.hidden_fields(0),
        *((name, form.get(name)) for name in ("from", "id") if form.get(name)),
        ("drawn", drawn_terms.session),
        ("seed", str(drawn_terms.request.seed)),
        ("digest", digest(drawn_terms.terms)),
    )
    changed = form.get("digest") != digest(drawn_terms.terms)
    is_opening = form.get("do") == "open"
    folder, path, wrong_folder = form.get("folder").strip(), None, ""
    if is_opening and folder and not changed:
        try:
            path = path_in(draft.tables, folder)
            names = drawn_terms.request.layout.names
            terms = read_terms(drawn_terms.terms)
            url = desk_of(request).connection.url
            prepare_letter_folder(path, names, url, terms)
        except InvalidParameters as error:
            wrong_folder = error.detail
    if not is_opening or changed or wrong_folder:
        field = _folder_field(request, wrong_folder)
        page = _build_review(
            request, coordinator, drawn_terms, hidden_fields, draft.left_out, field
        )
        notice = _CHANGED if is_opening and changed else None
        return render_page(request, page, notice=notice)
    try:
        is_open = bool(coordinator.session(drawn_terms.session).status())
    except (NotFound, SessionOver):
        is_open = False
    opened = coordinator.open_session(drawn_terms)
    if is_open:  # new invitations would invalidate the first ones
        return redirect_to(request, f"{SESSIONS}/{opened.id}")
    return render_invitations(request, opened, opened.invite(), path)


def _repeated_terms(form: Form, coordinator: Coordinator) -> Terms | None:
    name = form.get("from")
    return find_session(name, coordinator).terms if name else None


def _form_page(
    request: Request, coordinator: Coordinator, draft: Draft, number: int
) -> Response:
    page = build_screen(draft, coordinator.trusted_institutions, number)
    general = draft.wrong.get("")
    notice = Banner(text=general) if general else None
    return render_page(request, page, notice=notice)


def _build_review(
    request: Request,
    coordinator: Coordinator,
    drawn_terms: DrawnTerms,
    hidden_fields: tuple[tuple[str, str], ...],
    left_out: Sequence[str],
    folder: FormField,
) -> Screen:
    desk = desk_of(request)
    terms = read_terms(drawn_terms.terms)
    names = coordinator.trusted_institutions.names_by_key()
    if terms.identities.coordinator is not None:
        names.setdefault(terms.identities.coordinator, "you")
    sheet = sheet_of(drawn_terms.terms, terms, names, url=desk.connection.url)
    params, runs = session_terms.check_terms(terms), terms.evaluation
    return Screen(
        "desk/review.html.j2",
        sheet,
        hidden=hidden_fields,
        cost="" if runs is None else describe_cost_of_runs(params, terms.layout, runs),
        left_out=left_out,
        join_by=now() + timedelta(seconds=terms.deadlines.recruiting),
        folder=folder,
    )


def render_invitations(
    request: Request,
    opened: CoordinatedSession,
    invitations: Mapping[str, str],
    folder: Path | None,
) -> Response:
    """Write the invitations to a folder or, if it is None, show them on a page."""
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
                "letter": compose_letter(terms, slot),
            }
            for slot, invitation in invitations.items()
        ],
        folder="" if folder is None else str(folder),
    )
    return render_page(request, page)


@pass_coordinator
def post_new_invitations(request: Request, coordinator: Coordinator) -> Response:
    """Create new invitations for the selected slots, which invalidate the earlier ones."""
    form = form_of(request)
    slots, folder = form.get_all("slot"), form.get("folder").strip()
    if not slots:
        raise InvalidParameters("Tick a place.")
    opened, path = requested_session(request, coordinator), None
    if folder:  # before the earlier invitations become invalid
        path = path_in(desk_of(request).tables, folder)
        prepare_letter_folder(path, slots, opened.url, opened.terms)
    return render_invitations(request, opened, opened.invite(list(slots)), path)


@pass_coordinator
def get_free_slots(request: Request, coordinator: Coordinator) -> Response:
    """Show the slots that nobody has taken yet, for which invitations can be created."""
    opened = requested_session(request, coordinator)
    terms, status = opened.terms, opened.status()
    free = tuple(
        SlotLine.of(terms.layout.slot(slot.name))
        for slot in status.slots
        if slot.state is not SlotState.JOINED
    )
    page = Screen(
        "desk/inviting.html.j2",
        session=opened.id,
        title=terms.title,
        free=free,
        folder=_folder_field(request),
    )
    return render_page(request, page)


def _folder_field(request: Request, error: str = "") -> FormField:
    return FormField(
        name="folder",
        label="A folder for the invitations",
        hint="Each goes into a file that only you can read, with a letter to its "
        f"party. Relative paths start at {desk_of(request).tables}. Without a folder, "
        "they are shown only on the next page.",
        value=form_of(request).get("folder").strip(),
        error=error,
    )
