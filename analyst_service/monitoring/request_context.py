"""What is noted of a request while it runs: for the log, metrics and problems."""

from __future__ import annotations

import secrets
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class RequestContext:
    """One request. Nothing in it is secret: a credential is named by its id."""

    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    caller: str | None = None
    problem: str | None = None


_note: ContextVar[RequestContext | None] = ContextVar("coterie_note", default=None)


def begin() -> RequestContext:
    """Return the note of a request that begins now."""
    note = RequestContext()
    _note.set(note)
    return note


def current() -> RequestContext:
    """Return the note of the running request; outside of any, one of its own."""
    return _note.get() or RequestContext()


def current_id() -> str | None:
    """Return the id of the running request; None outside of any."""
    note = _note.get()
    return note.request_id if note else None
