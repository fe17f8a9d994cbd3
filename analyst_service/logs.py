"""Logs with one line of JSON per event, which contain no data and no secrets.

An exception is logged by its type, code and location only, because its message and its
traceback may contain data.
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
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Transaction


@dataclass(slots=True)
class RequestContext:
    """What the log, the metrics and problem documents need to know about a request.

    Nothing in it is secret: a credential is identified by its id.
    """

    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    caller: str | None = None
    problem: str | None = None


_request: ContextVar[RequestContext | None] = ContextVar(
    "coterie_request", default=None
)


def begin_request_context() -> RequestContext:
    """Create the context of a new request, and make it the current one."""
    context = RequestContext()
    _request.set(context)
    return context


def current_request_context() -> RequestContext:
    """Return the context of the current request, or an empty one outside of requests."""
    return _request.get() or RequestContext()


class LoggableError(Exception):
    """An exception whose message contains no data and may therefore be logged."""


def describe_error(error: BaseException) -> str:
    """Describe an exception by its type, code and location, without its message.

    The code is the SQLSTATE of a database or the name of an errno. If a database server
    refuses a connection there is no code, so the server's message is used, which can
    only name the role and the database. The message of a LoggableError is included too.
    """
    if isinstance(error, LoggableError):
        return f"{type(error).__name__}: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1:]
    location = "".join(f" at {frame.filename}:{frame.lineno}" for frame in place)
    return f"{type(error).__name__}{_error_code(error)}{location}"


def _error_code(error: BaseException) -> str:
    cause = getattr(error, "orig", None)  # what SQLAlchemy has wrapped
    if isinstance(error, OSError) and error.errno is not None:
        return f" {errno.errorcode.get(error.errno, f'errno {error.errno}')}"
    for name, prefix in (("sqlstate", "SQLSTATE "), ("sqlite_errorname", "")):
        if code := getattr(cause, name, None):
            return f" {prefix}{code}"
    if getattr(error, "statement", "") is None and hasattr(cause, "pgconn"):
        first = str(cause).splitlines()[:1]
        return "".join(f" ({line.rpartition(' failed: ')[2]})" for line in first)
    return ""


class JsonFormatter(logging.Formatter):
    """Formats log records as lines of JSON, with the fields of ``extra={"fields": …}``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        request = _request.get()
        error = record.exc_info[1] if record.exc_info else None
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request and request.request_id,
            "error": error and describe_error(error),
            **getattr(record, "fields", {}),
        }
        present = {name: value for name, value in entry.items() if value is not None}
        return json.dumps(present, default=str)


def configure_logging(level: str) -> None:
    """Send all logs of this process to standard output."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


# Administrative acts, with one log line for each. A line identifies a person by the id and
# label of their key, and contains no key, token, row or payload.

LOGGER: Final = "coterie.administration"
log = logging.getLogger(LOGGER)
log.setLevel(logging.INFO)  # regardless of --log-level

Field = str | int | bool | None


class Act(StrEnum):
    """An administrative act, as it is named in the log."""

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
    """The performer of an act: a key's id, or a constant below, and a label."""

    id: str
    label: str = ""


COMMAND: Final = "command"
"""The actor id of commands on the analyst's machine; the label is the user's login."""

SERVICE: Final = Actor("service")
STRANGER: Final = Actor("stranger")


def log_act(act: Act, actor: Actor, **fields: Field) -> None:
    """Log an administrative act; fields that are None are omitted."""
    named = {"actor": actor.id, "label": actor.label or None, **fields}
    present = {name: value for name, value in named.items() if value is not None}
    log.info(act.value, extra={"fields": present})


def log_when_committed(
    transaction: Transaction, act: Act, actor: Actor, **fields: Field
) -> None:
    """Log an administrative act as soon as its transaction is committed."""
    from sqlalchemy import event  # workers need no database

    event.listen(
        transaction,
        "after_commit",
        lambda _transaction: log_act(act, actor, **fields),
        once=True,
    )
