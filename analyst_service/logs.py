"""Logs, one line per event, as JSON or as text, without values and secrets.

An exception is logged by type, code and place only: its text and its traceback may hold
a value.
"""

from __future__ import annotations

import errno
import json
import logging
import secrets
import sys
import traceback
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Transaction


@dataclass(slots=True)
class RequestContext:
    """Facts about a request for the log, metrics and problem documents.

    Nothing in it is secret: a credential is named by its id.
    """

    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    caller: str | None = None
    problem: str | None = None


_request: ContextVar[RequestContext | None] = ContextVar(
    "coterie_request", default=None
)


def begin_request() -> RequestContext:
    """Return the context of a new request."""
    context = RequestContext()
    _request.set(context)
    return context


def current_request() -> RequestContext:
    """Return the context of the current request, or a new one outside of any."""
    return _request.get() or RequestContext()


class LoggableError(Exception):
    """An exception that may be logged with its text, which quotes no value."""


def describe(error: BaseException) -> str:
    """Return type, code and place of an exception, whose text may hold a value.

    The code is the SQLSTATE of a database or the name of an errno. A database server
    that refuses a connection sends no code; its message, which can name only role and
    database, is returned instead.
    """
    if isinstance(error, LoggableError):
        return f"{type(error).__name__}: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1:]
    location = "".join(f" at {frame.filename}:{frame.lineno}" for frame in place)
    return f"{type(error).__name__}{_code(error)}{location}"


def _code(error: BaseException) -> str:
    cause = getattr(error, "orig", None)  # the driver's exception, within SQLAlchemy's
    if isinstance(error, OSError) and error.errno is not None:
        return f" {errno.errorcode.get(error.errno, f'errno {error.errno}')}"
    for name, prefix in (("sqlstate", "SQLSTATE "), ("sqlite_errorname", "")):
        if code := getattr(cause, name, None):
            return f" {prefix}{code}"
    if getattr(error, "statement", "") is None and hasattr(cause, "pgconn"):
        first = str(cause).splitlines()[:1]
        return "".join(f" ({line.rpartition(' failed: ')[2]})" for line in first)
    return ""


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON, with the fields of ``extra={"fields": …}``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        request = _request.get()
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request and request.request_id,
            "error": _error(record),
            **getattr(record, "fields", {}),
        }
        present = {name: value for name, value in entry.items() if value is not None}
        return json.dumps(present, default=str)


class TextLines(logging.Formatter):
    """Formats a record as one line for people: local time, level, message, fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        when = datetime.fromtimestamp(record.created, UTC).astimezone()
        more = {"error": _error(record), **getattr(record, "fields", {})}
        fields = [
            f"{name}={value}" for name, value in more.items() if value is not None
        ]
        parts = [f"{when:%Y-%m-%d %H:%M:%S}", f"{record.levelname.lower():7}"]
        return "  ".join([*parts, record.getMessage(), *fields])


def write_logs(form: Literal["json", "text"] = "json", level: str = "info") -> None:
    """Send all logs of this process to standard output."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _error(record: logging.LogRecord) -> str | None:
    error = record.exc_info[1] if record.exc_info else None
    return describe(error) if error else None


# Administrative acts, one line each. A line names people by the id and the label of their
# principal, and holds no key, token, row or payload.

LOGGER: Final = "coterie.administration"
log = logging.getLogger(LOGGER)
log.setLevel(logging.INFO)  # whatever --log-level says

Field = str | int | bool | None


class Act(StrEnum):
    """An administrative act."""

    KEY_MADE = "key-made"
    KEY_ROTATED = "key-rotated"
    KEY_REVOKED = "key-revoked"
    TOKENS_REVOKED = "tokens-revoked"
    INVITATION_REFUSED = "invitation-refused"
    BACKUP_MADE = "backup-made"
    RESTORED = "restored"
    MIGRATED = "migrated"
    ADOPTED = "adopted"
    SESSION_DELETED = "session-deleted"


class Actor(NamedTuple):
    """Whoever acts: the id of a principal or a name below, and a label for people."""

    id: str
    label: str = ""


COMMAND: Final = "command"
"""The id for commands on the analyst's machine; the label is the user's login."""

SERVICE: Final = Actor("service")
STRANGER: Final = Actor("stranger")


def log_act(act: Act, actor: Actor, **fields: Field) -> None:
    """Log an act; fields that are None are omitted."""
    named = {"actor": actor.id, "label": actor.label or None, **fields}
    present = {name: value for name, value in named.items() if value is not None}
    log.info(act.value, extra={"fields": present})


def log_when_committed(
    transaction: Transaction, act: Act, actor: Actor, **fields: Field
) -> None:
    """Log an act once its transaction is committed."""
    from sqlalchemy import event  # worker processes log without a database

    event.listen(
        transaction,
        "after_commit",
        lambda _transaction: log_act(act, actor, **fields),
        once=True,
    )
