"""All pages of the desk: its rooms, behind the gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from coterie_pages.models.screens import Refusal
from party_sdk.desk.coordinator import coordination
from party_sdk.desk.form_answers import see_other
from party_sdk.desk.gate import LEFT, Gate
from party_sdk.desk.party import parties
from party_sdk.desk.responses import (
    Desk,
    Room,
    desk_of,
    refusal,
    render_error,
    render_page,
)
from party_sdk.desk.tables import own_tables

ROOMS: Final[tuple[Room, ...]] = (parties.room, own_tables.room, coordination.room)
"""Ways in the frame, in their order; anyone who adds pages adds a room."""


def leave(request: Request) -> Response:
    """End the visit; what runs continues."""
    desk_of(request).visits.end()
    return see_other(LEFT)


ROUTES: Final[tuple[Route, ...]] = (
    Route("/leave", leave, methods=["POST"]),
    *(route for room in ROOMS for route in room.routes),
)
"""All pages and forms, below the root."""


def create_app(desk: Desk, say: Callable[[str], None]) -> ASGIApp:
    """Return the pages of a desk.

    say: called with a line about a defect.
    """
    app = Starlette(
        routes=[Mount(desk.root, routes=ROUTES)],
        exception_handlers={
            CoterieError: _handle_error,
            HTTPException: _handle_not_found,
            Exception: _broken,
        },
    )
    app.state.desk = full = replace(desk, rooms=ROOMS)
    return Gate(app, full, say)


async def _handle_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, CoterieError):
        raise error
    return render_error(request, error)


async def _handle_not_found(request: Request, error: Exception) -> Response:
    del error
    return refusal(request, Problem.NOT_FOUND, "Nothing has this address.")


async def _broken(request: Request, error: Exception) -> Response:
    del error
    told = Refusal(
        title="This page has a defect",
        detail="What runs continues.",
        remedy="The terminal says where it is: tell it to anyone who gave you the program.",
    )
    return render_page(request, told, status=500)
