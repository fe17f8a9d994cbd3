"""What the pages of a coordinator begin with: an analyst, a key, and the sessions."""

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
from coterie_pages.models import FormField, Screen
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.desk.responses import Desk, desk_of, form_of, render_page, to
from party_sdk.home.clock import now

SESSIONS: Final = "/sessions"
ABOVE: Final = f"{SESSIONS}/-"
"""Where pages of no session are: no session has this name."""
ANALYST: Final = f"{ABOVE}/analyst"
_SECONDS: Final = 10

Handler = Callable[[Request, Coordinator], Response]


def pass_coordinator(handle: Handler) -> Callable[[Request], Response]:
    """Let a page speak with the analyst; ask for address and key where they lack."""

    @wraps(handle)
    def handle_request(request: Request) -> Response:
        desk = desk_of(request)
        known = desk.connection.known
        if known is None:
            return to(request, ANALYST)
        try:
            with _at(desk, known.url, known.key) as coordinator:
                return handle(request, coordinator)
        except Unauthenticated as error:
            wrong = f"{error.problem.title}: {error.detail}"
            return _analyst_page(request, url=known.url, wrong_key=wrong)

    return handle_request


def _at(desk: Desk, url: str, key: str) -> Coordinator:
    return Coordinator(url, key, home=desk.home, analyst=desk.connect(url))


def session_in(request: Request, coordinator: Coordinator) -> CoordinatedSession:
    """Return the session that an address names; :class:`NotFound` if it names none."""
    return session_named(request.path_params["session"], coordinator)


def session_named(named: str, coordinator: Coordinator) -> CoordinatedSession:
    """Return a session by its id; :class:`NotFound` if it is none."""
    if not re.fullmatch(NAME_PATTERN, named):
        raise NotFound("No session has this name.")
    return coordinator.session(named)


# The list


@pass_coordinator
def get_sessions(request: Request, coordinator: Coordinator) -> Response:
    """Show the sessions of the key."""
    found = sorted(coordinator.sessions(), key=lambda line: line.created_at)
    here = frozenset(line.id for line in found if coordinator.session(line.id).is_ours)
    known = desk_of(request).connection.known
    url = "" if known is None else known.url
    rows = tuple(reversed(found))
    page = Screen("desk/sessions.html.j2", url=url, rows=rows, here=here, now=now())
    waits = any(line.state not in OVER for line in found)
    return render_page(request, page, seconds=_SECONDS if waits else 0)


# Analyst and key


def get_analyst(request: Request) -> Response:
    """Show the form that takes an address and a key; never the key that is known."""
    known = desk_of(request).connection.known
    return _analyst_page(request, url="" if known is None else known.url)


def post_analyst(request: Request) -> Response:
    """Keep an address and a key with which the analyst lets us see sessions."""
    desk, form = desk_of(request), form_of(request)
    url, key = form.one("url").strip().rstrip("/"), form.one("key").strip()
    if not key.isascii() or not key:
        return _analyst_page(request, url=url, wrong_key="Give the key.")
    try:
        coordinator = _at(desk, url, key)
    except CoterieError as error:
        return _analyst_page(request, url=url, wrong_url=error.detail)
    try:
        with coordinator:
            coordinator.analyst_key(is_new=bool(form.one("changed")))
            coordinator.sessions()
    except (Unauthenticated, Forbidden) as error:
        wrong = f"{error.problem.title}. {error.detail}"
        return _analyst_page(request, url=url, wrong_key=wrong)
    except CoterieError as error:
        return _analyst_page(
            request,
            url=url,
            wrong_url=f"{error.problem.title}. {error.detail}",
            changed=isinstance(error, GuardRefused),
        )
    desk.connection.keep(url, key)
    return to(request, SESSIONS)


def post_forget(request: Request) -> Response:
    """Forget address and key; sessions continue."""
    desk_of(request).connection.forget()
    return to(request, ANALYST)


def _analyst_page(
    request: Request,
    *,
    url: str,
    wrong_url: str = "",
    wrong_key: str = "",
    changed: bool = False,
) -> Response:
    known = desk_of(request).connection.known
    page = Screen(
        "desk/analyst.html.j2",
        url=FormField(
            name="url",
            label="Address of the analyst",
            hint="As its administrator told it, e.g. https://analyst.example.",
            required=True,
            value=url,
            wrong=wrong_url,
        ),
        given=known is not None,
        environment=known is not None and known.environment,
        wrong_key=wrong_key,
        changed=changed,
    )
    return render_page(request, page)


# Numbers


def parse_number(text: str, what: str, least: int = 1) -> int:
    """Return a whole number in a form; :class:`InvalidParameters` names it else."""
    if not (
        text.isascii() and text.isdigit() and len(text) < 20 and int(text) >= least
    ):
        raise InvalidParameters(f"a whole number from {least} is needed.", field=what)
    return int(text)
