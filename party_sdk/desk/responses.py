"""The desk's state, submitted forms, and helpers that render responses."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Self
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from clustering_protocols.common.errors import CoterieError, InvalidParameters
from coterie_pages.models import Banner, Frame, Link, Refusal, Screen
from coterie_pages.pages import Report, render_screen
from party_sdk.analyst_client.analyst import CoordinatedAnalyst
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.application.home import Home
from party_sdk.desk.form_answers import ANSWER_PARAMETER, is_page, see_other
from party_sdk.desk.visits import Openings, Visits
from party_sdk.home.files import read_secret_variable
from party_sdk.supervisor.supervisor import Supervisor

_PATIENCE: Final = 10.0  # seconds; short, because a person waits for the page
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]+", re.ASCII)


@dataclass(slots=True)
class Connection:
    """The analyst and key in use: from the environment, until a form replaces them.

    Address and key are held in memory only, until the process ends.

    url, key: the analyst's address and a coordinator's key; empty if not set.
    environment: whether both come from environment variables.
    """

    url: str = ""
    key: str = field(default="", repr=False)
    environment: bool = False

    @classmethod
    def read_environment(cls) -> Self:
        """Read ``COTERIE_URL`` and ``COTERIE_KEY``, and use them only if both are set.

        Raises InvalidParameters if the file of ``COTERIE_KEY_FILE`` cannot be read.
        """
        url = os.environ.get("COTERIE_URL", "")
        key = read_secret_variable("COTERIE_KEY")
        return cls(url, key, environment=True) if url and key else cls()

    def set_analyst(self, url: str, key: str) -> None:
        """Replace the analyst's address and the key; empty strings clear them."""
        self.url, self.key, self.environment = url, key, False


class NavSection(NamedTuple):
    """A section of the desk: its link in the navigation, and its routes.

    path: the path of its first page; like the routes, relative to the desk's root.
    """

    path: str
    text: str
    routes: Sequence[Route]


@dataclass(frozen=True, kw_only=True)
class Desk:
    """The settings and state of the desk of one home.

    tables: the folder whose files can be chosen as tables.
    root: the random path prefix of all pages. A browser sends a cookie for 127.0.0.1 to
        servers on all ports, but only below the cookie's path.
    hosts: accepted values of the ``Host`` header.
    """

    home: Path
    tables: Path
    root: str
    hosts: frozenset[str]
    visits: Visits
    openings: Openings
    background: Supervisor
    connection: Connection = field(default_factory=Connection.read_environment)
    sections: Sequence[NavSection] = ()

    @property
    def own_home(self) -> Home:
        """Return the home, with short timeouts because a person waits for the page."""
        return Home(path=self.home, patience=_PATIENCE)

    def page_at(self, path: str) -> Callable[[Request], Response] | None:
        """Return the handler of the page at a path relative to the root, or None."""
        routes = (route for section in self.sections for route in section.routes)
        handlers = (
            route.endpoint
            for route in routes
            if "GET" in (route.methods or ()) and route.path_regex.match(path)
        )
        return next(handlers, None)

    def page_above(self, path: str) -> str:
        """Return the longest prefix of a path, relative to the root, that has a page."""
        while path.strip("/") and self.page_at(path) is None:
            path = path.rpartition("/")[0]
        return path or "/"

    def connect(self, url: str) -> CoordinatedAnalyst:
        """Connect to an analyst, with short timeouts because a person waits for a page."""
        return connect(url, patience=_PATIENCE)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form or query string, in which a name may occur several times."""

    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Build a form from pairs of names and values."""
        fields: dict[str, list[str]] = {}
        for name, value in pairs:
            fields.setdefault(name, []).append(value)
        return cls(fields)

    def get(self, name: str) -> str:
        """Return the value of a field, or an empty string if the form lacks the field.

        Raises InvalidParameters if the field occurs more than once.
        """
        values = self.get_all(name)
        if len(values) > 1:
            raise InvalidParameters("it appears twice in the form.", field=name)
        return values[0] if values else ""

    def get_all(self, name: str) -> Sequence[str]:
        """Return all values of a field in the order in which they were submitted."""
        return self.fields.get(name, ())


def desk_of(request: Request) -> Desk:
    """Return the desk that handles a request."""
    desk: Desk = request.app.state.desk
    return desk


def form_of(request: Request) -> Form:
    """Return the submitted form, whose token has been verified; for GET, the query."""
    form: Form = request.state.form
    return form


def render_page(
    request: Request,
    model: Screen | Report,
    *,
    notice: Banner | None = None,
    seconds: int = 0,
    waits: bool = False,
    status: int = 200,
) -> HTMLResponse:
    """Render a model as a page with navigation and an optional notice.

    notice: shown unless the form that led to this page has an error.
    seconds: interval of the page's automatic refresh; 0 for none.
    waits: whether the page waits for the operator's answer.
    """
    desk = desk_of(request)
    address = address_of(request, desk)
    frame = Frame(
        root=desk.root,
        address=address,
        links=tuple(_links(desk, address)),
        token=request.state.token,  # AuthMiddleware has set it
        notice=getattr(request.state, "notice", None) or notice,
        seconds=seconds,
        waits=waits,
    )
    return render_in_frame(model, frame, status)


def render_in_frame(
    model: Screen | Report, frame: Frame, status: int = 200
) -> HTMLResponse:
    """Render a model inside the given frame of navigation and notices."""
    return HTMLResponse(render_screen(model, frame), status_code=status)


def address_of(request: Request, desk: Desk) -> str:
    """Return the address of the requested page or, for a form, of the page above it."""
    path, query = request.url.path, request.url.query
    if request.method == "POST":
        return desk.root + desk.page_above(path.removeprefix(desk.root))
    return f"{path}?{query}" if query else path


def _links(desk: Desk, address: str) -> list[Link]:
    shown_path = address.partition("?")[0].removeprefix(desk.root)
    paths = [section.path for section in desk.sections]
    current = max(filter(shown_path.startswith, paths), key=len, default="")
    return [
        Link(href=f"{desk.root}{path}", text=text, here=path == current)
        for path, text, _ in desk.sections
    ]


def redirect_to(request: Request, path: str) -> Response:
    """Redirect to a path that is relative to the desk's root."""
    return see_other(f"{desk_of(request).root}{path}")


def redirect_to_page(request: Request, desk: Desk, answer: Response) -> Response:
    """Return a redirect to the stored response, or the response if it is not a page."""
    if not is_page(answer.status_code, answer.headers):
        return answer
    query = urlencode({ANSWER_PARAMETER: desk.visits.answers.store(answer)})
    return see_other(f"{address_of(request, desk)}?{query}")


def render_error(request: Request, error: CoterieError) -> Response:
    """Render an error as a page, with the HTTP status of its problem.

    The page has the link that the request's handler left in ``request.state.link``.
    """
    problem = error.problem
    model = Refusal(
        title=problem.title,
        detail=error.detail,
        remedy=error.remedy,
        link=getattr(request.state, "link", None),
    )
    return render_page(request, model, status=problem.status)


def render_form_error(request: Request, error: CoterieError) -> Response:
    """Show the error of a form on the page that the form came from.

    The page's handler finds the submitted fields in :func:`form_of`. If it cannot show
    the page, the error is a page of its own.
    """
    desk = desk_of(request)
    address = address_of(request, desk).removeprefix(desk.root)
    if (show_page := desk.page_at(address)) is not None:
        request.state.notice = banner_of(error)
        with suppress(CoterieError):  # e.g. no party has this address
            page = show_page(request)
            if is_page(page.status_code, page.headers):
                return page
        request.state.notice = None
    return render_error(request, error)


def banner_of(error: CoterieError) -> Banner:
    """Return a banner that shows an error and its remedy."""
    text = f"{error.problem.title}: {error.detail}"
    return Banner(text=text, remedy=error.remedy)


def download(content: bytes, name: str, media_type: str) -> Response:
    """Return content as a download, which a browser does not display as a page."""
    disposition = f'attachment; filename="{_NOT_IN_NAMES.sub("-", name)}"'
    headers = {"Content-Disposition": disposition}
    return Response(content, media_type=media_type, headers=headers)


def path_in(folder: Path, name: str) -> Path:
    """Return the path of a file or folder, relative to the folder of tables.

    Raises InvalidParameters if it cannot be read: a pipe would block the desk.
    """
    try:
        path = folder / Path(name).expanduser()
        mode = path.stat().st_mode
        is_file = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (OSError, RuntimeError, ValueError):  # no such user, a name that is too long
        is_file = False
    if not is_file:
        raise InvalidParameters(f"The file {name[-100:]!r} cannot be read.")
    return path
