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

from clustering_protocols.errors import CoterieError
from clustering_protocols.problems import Problem
from coterie_pages.models.screens import Refusal
from party_sdk.desk import coordination, parties
from party_sdk.desk.answers import Desk, Room, desk_of, framed, refusal, refused, shown
from party_sdk.desk.gate import Gate

ROOMS: Final[tuple[Room, ...]] = (parties.room, coordination.room)
"""Ways in the frame, in their order; whoever adds pages adds a room."""


def create_app(desk: Desk, say: Callable[[str], None]) -> ASGIApp:
    """Return the pages of a desk.

    Parameters
    ----------
    desk : Desk
    say : callable
        Called with a line about a defect.
    """
    rooms = [route for room in ROOMS for route in room.routes]
    routes = [Route("/leave", leave, methods=["POST"]), *rooms]
    app = Starlette(
        routes=[Mount(desk.root, routes=routes)],
        exception_handlers={
            CoterieError: _refused,
            HTTPException: _missing,
            Exception: _broken,
        },
    )
    app.state.desk = replace(desk, rooms=ROOMS)
    return Gate(app, desk, say)


def leave(request: Request) -> Response:
    """End the visit; what runs goes on."""
    desk = desk_of(request)
    desk.visits.end()
    told = Refusal(
        title="You left the desk",
        detail="What runs goes on as long as 'coterie ui' or 'coterie party serve' does.",
        remedy="Run 'coterie ui' again: it shows a new link.",
    )
    return framed(desk, told, None)


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, CoterieError):
        raise error
    return refused(request, error)


async def _missing(request: Request, error: Exception) -> Response:
    del error
    return refusal(request, Problem.NOT_FOUND, "Nothing has this address.")


async def _broken(request: Request, error: Exception) -> Response:
    del error
    told = Refusal(
        title="This page has a defect",
        detail="What runs goes on.",
        remedy="The terminal says where it is: tell it to whoever gave you the program.",
    )
    return shown(request, told, status=500)
