"""What every page of the desk is made with: its frame, a form, a refusal."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError, InvalidParameters
from coterie_pages.models import Banner, Frame, Link, Refusal, Screen
from coterie_pages.pages import Report, screen
from coterie_pages.served_pages import HEADERS
from party_sdk.analyst_client.analyst import CoordinatedAnalyst
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.application.home import Home
from party_sdk.desk.form_answers import page_above, see_other
from party_sdk.desk.visits import DeskVisitor, Openings, Visits
from party_sdk.home.files import read_secret_variable
from party_sdk.supervisor import PartyOrder, Supervisor

_PATIENCE: Final = 10.0  # seconds: a person waits for the page
_UNNAMED: Final = re.compile(r"[^\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class AnalystConnection:
    """Where an analyst is, and the key that opens sessions there.

    environment: whether the environment of the process gave them.
    """

    url: str
    key: str = field(repr=False)
    environment: bool = False


class Connection:
    """What is known so far: the environment's at first, then what a form says.

    It is written nowhere: it ends with the process.
    """

    def __init__(self, known: AnalystConnection | None = None) -> None:
        self.known = known

    @classmethod
    def read_environment(cls) -> Self:
        """Return what ``COTERIE_URL`` and ``COTERIE_KEY`` say, where both are set.

        Raises InvalidParameters if the file that ``COTERIE_KEY_FILE`` names is none.
        """
        url = os.environ.get("COTERIE_URL", "")
        key = read_secret_variable("COTERIE_KEY")
        return cls(
            AnalystConnection(url, key, environment=True) if url and key else None
        )

    def keep(self, url: str, key: str) -> None:
        """Know another analyst and key from now on."""
        self.known = AnalystConnection(url, key)

    def forget(self) -> None:
        """Know none."""
        self.known = None


class Room(NamedTuple):
    """Pages that belong together: a way to them in every frame, and their routes.

    path: of the first one, below the root; routes are below the root, too.
    """

    path: str
    text: str
    routes: Sequence[Route]


@dataclass(frozen=True, kw_only=True)
class Desk:
    """The desk of a home, as its pages know it.

    home, tables: ``tables``: the folder whose files are offered as tables.
    root: the path of all pages. It is drawn: a browser sends a cookie to every program
        that listens on 127.0.0.1, whatever its port, but to this path alone.
    hosts: under which names pages are asked for; a browser says which.
    """

    home: Path
    tables: Path
    root: str
    hosts: frozenset[str]
    visits: Visits
    openings: Openings
    background: Supervisor
    connection: Connection = field(default_factory=Connection.read_environment)
    stop: Event = field(default_factory=Event)
    rooms: Sequence[Room] = ()

    def orders(self, session: str, slot: str) -> PartyOrder:
        """Return the order of one party of this home."""
        return PartyOrder(self.home, session, slot)

    @property
    def own_home(self) -> Home:
        """Return this home, which asks analysts for no longer than a person waits."""
        return Home(path=self.home, patience=_PATIENCE)

    def has_page(self, path: str) -> bool:
        """Return whether a path below the root is asked for by GET."""
        routes = (route for room in self.rooms for route in room.routes)
        return any(
            "GET" in (route.methods or ()) and route.path_regex.match(path)
            for route in routes
        )

    def connect(self, url: str) -> CoordinatedAnalyst:
        """Return an analyst that is asked for no longer than a person waits."""
        return connect(url, patience=_PATIENCE)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form; a name may stand in it several times."""

    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Return a form of fields in the order in which they were sent."""
        fields: dict[str, list[str]] = {}
        for name, value in pairs:
            fields.setdefault(name, []).append(value)
        return cls(fields)

    def one(self, name: str) -> str:
        """Return the value of a field; empty where it is not there.

        Raises InvalidParameters if it stands in the form twice.
        """
        found = self.all(name)
        if len(found) > 1:
            raise InvalidParameters("it stands in the form twice.", field=name)
        return found[0] if found else ""

    def all(self, name: str) -> Sequence[str]:
        """Return all values of a field, in their order."""
        return self.fields.get(name, ())


def desk_of(request: Request) -> Desk:
    """Return the desk whose page is asked for."""
    found: Desk = request.app.state.desk
    return found


def form_of(request: Request) -> Form:
    """Return the form that was sent; the gate has checked that it is one of ours."""
    found: Form = request.state.form
    return found


def query_of(request: Request) -> Form:
    """Return what stands in the query of an address, as a form."""
    return Form.of(parse_qsl(request.url.query, keep_blank_values=True))


def render_page(
    request: Request,
    model: Screen | Report,
    *,
    notice: Banner | None = None,
    seconds: int = 0,
    waits: bool = False,
    status: int = 200,
) -> HTMLResponse:
    """Return a model as a page with its frame.

    seconds: after how long it is shown anew by itself; 0 for never.
    waits: whether it waits for the person.
    """
    return render_in_frame(
        desk_of(request),
        model,
        getattr(request.state, "visitor", None),
        address=address_of(request, desk_of(request)),
        notice=notice,
        seconds=seconds,
        waits=waits,
        status=status,
    )


def render_in_frame(
    desk: Desk,
    model: Screen | Report,
    visitor: DeskVisitor | None,
    *,
    address: str = "",
    notice: Banner | None = None,
    seconds: int = 0,
    waits: bool = False,
    status: int = 200,
) -> HTMLResponse:
    """Return the same where it is not known who asks: then the root is not told."""
    root = "" if visitor is None else desk.root
    links = () if visitor is None else tuple(_links(desk, address))
    frame = Frame(
        root=root,
        address=address,
        links=links,
        token="" if visitor is None else visitor.token,
        leave="" if visitor is None else f"{root}/leave",
        notice=notice,
        seconds=seconds,
        waits=waits,
    )
    return HTMLResponse(screen(model, frame), status_code=status, headers=dict(HEADERS))


def address_of(request: Request, desk: Desk) -> str:
    """Return the address at which the page of a request is asked for.

    That of a form is the nearest page above it.
    """
    path, query = request.url.path, request.url.query
    if request.method == "POST":
        return desk.root + page_above(path.removeprefix(desk.root), desk.has_page)
    return f"{path}?{query}" if query else path


def _links(desk: Desk, address: str) -> list[Link]:
    shown_path = address.partition("?")[0].removeprefix(desk.root)
    longest = max(
        (room.path for room in desk.rooms if shown_path.startswith(room.path)),
        key=len,
        default="",
    )
    return [
        Link(href=f"{desk.root}{room.path}", text=room.text, here=room.path == longest)
        for room in desk.rooms
    ]


def to(request: Request, path: str) -> Response:
    """Return the way to another page, named below the root, to be asked for by GET."""
    return see_other(f"{desk_of(request).root}{path}")


def render_error(request: Request, error: CoterieError) -> HTMLResponse:
    """Return the page of an error."""
    problem = error.problem
    told = Refusal(title=problem.title, detail=error.detail, remedy=error.remedy)
    return render_page(request, told, status=problem.status)


def refusal(request: Request, problem: Problem, detail: str) -> HTMLResponse:
    """Return the page of a problem."""
    return render_error(request, CoterieError.of(problem, detail))


def bad(error: CoterieError) -> Banner:
    """Return an error to be shown above the form that it is about."""
    return Banner(
        text=f"{error.problem.title}: {error.detail}", remedy=error.remedy, good=False
    )


def file(content: bytes, name: str, media_type: str) -> Response:
    """Return a file to keep; it is never shown among the pages of this address."""
    kept = {"Content-Disposition": f'attachment; filename="{_UNNAMED.sub("-", name)}"'}
    said: dict[str, Any] = {**HEADERS, **kept}
    return Response(content, media_type=media_type, headers=said)
