"""The desk's process: a web server on 127.0.0.1, with the supervisor in a thread."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from html import escape
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from clustering_protocols.common.errors import CoterieError, InvalidParameters, NotFound
from coterie_pages.models import Refusal
from party_sdk.desk.form_answers import see_other
from party_sdk.desk.gate import GOODBYE_PATH, AuthMiddleware
from party_sdk.desk.responses import (
    Desk,
    desk_of,
    redirect_to_page,
    render_error,
    render_form_error,
    render_page,
)
from party_sdk.desk.sections import SECTIONS
from party_sdk.desk.visits import Openings, Visits
from party_sdk.home.store import store_of
from party_sdk.supervisor.supervisor import Supervisor

HOST: Final = "127.0.0.1"
_LEASE: Final = "the desk"
_GRACE_SECONDS: Final = 3

Say = Callable[[str], None]
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Desk</title>
<a href="{link}">Open the desk</a>
</html>
"""


@dataclass(frozen=True, kw_only=True)
class DeskAddress:
    """How to reach a running desk: its process id, its port, and a one-time link."""

    process: int
    port: int
    link: str


def serve(
    home: Path,
    tables: Path,
    *,
    port: int,
    idle: timedelta,
    on_open: Callable[[DeskAddress], None],
    say: Say,
) -> bool:
    """Serve the desk of a home until the process is interrupted or terminated.

    port: the port to listen on; 0 for any free port.
    on_open: called with the address once the desk can be reached. If another process
        already serves the desk, called with its address and a new link.
    say: called with lines for the terminal, which contain no secret, row or value.

    Returns bool: whether this process served the desk.

    Raises InvalidParameters if the port is taken or not permitted.
    Raises StorageFull if the home's disk has no room left.
    """
    openings, store = Openings(home), store_of(home)
    if (holder := store.lease_holder(_LEASE)) is not None:
        process, port = map(int, holder.split())
        on_open(DeskAddress(process=process, port=port, link=_link(port, openings)))
        return False
    with _open_listener(port) as listener:
        port = listener.getsockname()[1]
        with store.lease(_LEASE, f"{os.getpid()} {port}"):
            desk = Desk(
                home=home,
                tables=tables.absolute(),
                root=f"/{secrets.token_urlsafe(12)}",
                hosts=frozenset({f"{HOST}:{port}", f"localhost:{port}"}),
                visits=Visits(idle),
                openings=openings,
                background=Supervisor(home, say),
            )
            on_open(
                DeskAddress(process=os.getpid(), port=port, link=_link(port, openings))
            )
            _run(desk, listener, say)
    return True


def _run(desk: Desk, listener: socket.socket, say: Say) -> None:
    config = uvicorn.Config(
        create_app(desk, say),
        lifespan="off",
        ws="none",
        access_log=False,  # a path may contain a one-time link
        log_config=None,
        log_level="critical",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=65_536,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn handles signals itself, but raises them again after its shutdown
        signal.signal(number, lambda *_: None)
    desk.background.start()
    try:
        uvicorn.Server(config).run([listener])
    finally:
        desk.background.stop()


def _link(port: int, openings: Openings) -> str:
    return f"http://{HOST}:{port}/open/{openings.create_token()}"


@contextmanager
def _open_listener(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise
            raise InvalidParameters(
                f"Port {port} is taken or not permitted: leave out --port."
            ) from None
        listener.listen(64)
        yield listener


def write_link_page(home: Path, link: str) -> Path:
    """Write a page, readable by its owner alone, that redirects to the desk's link."""
    page = _PAGE.format(link=escape(link)).encode()
    return store_of(home).publish("desk-link.html", page)


def leave(request: Request) -> Response:
    """End the visit; orders continue to run."""
    desk_of(request).visits.end()
    return see_other(GOODBYE_PATH)


ROUTES: Final[tuple[Route, ...]] = (
    Route("/leave", leave, methods=["POST"]),
    *(route for section in SECTIONS for route in section.routes),
)
"""All routes, relative to the desk's root."""


def create_app(desk: Desk, say: Callable[[str], None]) -> ASGIApp:
    """Return the ASGI application that serves a desk.

    say: called with the type and location of an unexpected error.
    """
    app = Starlette(
        routes=[Mount(desk.root, routes=ROUTES)],
        exception_handlers=dict.fromkeys(
            (CoterieError, HTTPException, Exception), _show_error
        ),
    )
    app.state.desk = full_desk = replace(desk, sections=SECTIONS)
    return AuthMiddleware(app, full_desk, say)


def _show_error(request: Request, error: Exception) -> Response:
    page = _error_page(request, error)
    if request.method != "POST":
        return page
    return redirect_to_page(request, desk_of(request), page)


def _error_page(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return render_error(request, NotFound("There is no page at this address."))
    if isinstance(error, CoterieError):
        show = render_form_error if request.method == "POST" else render_error
        return show(request, error)
    model = Refusal(
        title="This page failed",
        detail="Orders continue to run.",
        remedy="The terminal shows where: report it to whoever gave you the program.",
    )
    return render_page(request, model, status=500)
