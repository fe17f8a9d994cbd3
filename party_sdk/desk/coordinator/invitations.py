"""Invitations: made here, shown once or written into a folder, never sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.wire.states import SlotState
from coterie_pages.models.desk_coordinator import (
    InvitationPage,
    Invitations,
    OneInvitation,
    SlotLine,
)
from coterie_pages.models.fields import FormField
from coterie_pages.models.frame import Banner
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.coordinator.letters import letter, write_letters
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.desk.coordinator.context import pass_coordinator, session_in
from party_sdk.desk.responses import desk_of, form_of, render_page
from party_sdk.home.files import private_folder


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
    page = Invitations(
        session=opened.id,
        title=terms.title,
        made=tuple(
            OneInvitation(
                slot=slot,
                title=terms.layout.slot(slot).title,
                invitation=invitation if folder is None else "",
                letter=letter(terms, slot),
            )
            for slot, invitation in invitations.items()
        ),
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
    page = InvitationPage(
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
