"""The pages that list a coordinator's sessions, and that set the analyst and key in use."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clustering_protocols.common.errors import (
    CoterieError,
    Forbidden,
    GuardRefused,
    InvalidParameters,
    NotFound,
    Unauthenticated,
)
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.wire.states import OVER
from coterie_pages.models import FormField, Link, Screen
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.desk.responses import Desk, desk_of, form_of, redirect_to, render_page
from party_sdk.home.clock import now

SESSIONS: Final = "/sessions"
ABOVE: Final = f"{SESSIONS}/-"
"""Path prefix of pages without a session; ``-`` is not a valid session id."""
ANALYST: Final = f"{ABOVE}/analyst"
_REFRESH_SECONDS: Final = 10

Handler = Callable[[Request, Coordinator], Response]


def pass_coordinator(handle: Handler) -> Callable[[Request], Response]:
    """Decorate a page handler to receive a Coordinator; redirect if no key is set."""

    @wraps(handle)
    def handle_request(request: Request) -> Response:
        desk = desk_of(request)
        url, key = desk.connection.url, desk.connection.key
        if not key:
            return redirect_to(request, ANALYST)
        try:
            with _open_coordinator(desk, url, key) as coordinator:
                return handle(request, coordinator)
        except Unauthenticated as error:
            wrong = f"{error.problem.title}: {error.detail}"
            return get_analyst(request, url, wrong_key=wrong)
        except CoterieError:
            href = f"{desk.root}{ANALYST}"
            request.state.link = Link(href=href, text="Another analyst or key")
            raise

    return handle_request


def _open_coordinator(desk: Desk, url: str, key: str) -> Coordinator:
    return Coordinator(url, key, home=desk.home, analyst=desk.connect(url))


def requested_session(request: Request, coordinator: Coordinator) -> CoordinatedSession:
    """Return the session in the request's path; raise NotFound if its id is malformed."""
    return find_session(request.path_params["session"], coordinator)


def find_session(name: str, coordinator: Coordinator) -> CoordinatedSession:
    """Return the session with this id; raise :class:`NotFound` if the id is malformed."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise NotFound("No session has this name.")
    return coordinator.session(name)


@pass_coordinator
def get_sessions(request: Request, coordinator: Coordinator) -> Response:
    """Show the sessions that were opened with the current key."""
    lines = sorted(coordinator.sessions(), key=lambda line: line.created_at)
    own_sessions = frozenset(
        line.id for line in lines if coordinator.session(line.id).is_ours
    )
    page = Screen(
        "desk/sessions.html.j2",
        url=desk_of(request).connection.url,
        rows=tuple(reversed(lines)),
        here=own_sessions,
        now=now(),
    )
    waits = any(line.state not in OVER for line in lines)
    return render_page(request, page, seconds=_REFRESH_SECONDS if waits else 0)


def get_analyst(
    request: Request,
    url: str | None = None,
    *,
    wrong_url: str = "",
    wrong_key: str = "",
    changed: bool = False,
) -> Response:
    """Show the form for the analyst's address and key, without the current key."""
    connection = desk_of(request).connection
    page = Screen(
        "desk/analyst.html.j2",
        url=FormField(
            name="url",
            label="Address of the analyst",
            hint="As its administrator gave it, e.g. https://analyst.example.",
            required=True,
            value=connection.url if url is None else url,
            error=wrong_url,
        ),
        given=bool(connection.key),
        environment=connection.environment,
        wrong_key=wrong_key,
        changed=changed,
    )
    return render_page(request, page)


def post_analyst(request: Request) -> Response:
    """Start to use the submitted address and key if the analyst accepts them."""
    desk, form = desk_of(request), form_of(request)
    url, key = form.get("url").strip().rstrip("/"), form.get("key").strip()
    if not key.isascii() or not key:
        return get_analyst(request, url, wrong_key="Enter the key.")
    try:
        coordinator = _open_coordinator(desk, url, key)
    except CoterieError as error:
        return get_analyst(request, url, wrong_url=error.detail)
    try:
        with coordinator:
            coordinator.analyst_key(is_new=bool(form.get("changed")))
            coordinator.sessions()
    except (Unauthenticated, Forbidden) as error:
        wrong = f"{error.problem.title}. {error.detail}"
        return get_analyst(request, url, wrong_key=wrong)
    except CoterieError as error:
        return get_analyst(
            request,
            url,
            wrong_url=f"{error.problem.title}. {error.detail}",
            changed=isinstance(error, GuardRefused),
        )
    desk.connection.set_analyst(url, key)
    return redirect_to(request, SESSIONS)


def post_forget(request: Request) -> Response:
    """Forget the analyst's address and the key; running sessions are not affected."""
    desk_of(request).connection.set_analyst("", "")
    return redirect_to(request, ANALYST)


def parse_number(text: str, field_name: str, minimum: int = 1) -> int:
    """Parse a field as an integer of at least ``minimum``, or raise InvalidParameters."""
    if not (
        text.isascii() and text.isdigit() and len(text) < 20 and int(text) >= minimum
    ):
        raise InvalidParameters(
            f"a whole number of at least {minimum} is needed.", field=field_name
        )
    return int(text)
