"""Logs, one line per event, as JSON or as text, without values and secrets.

Exceptions are named by kind, code and place alone: their text, and a traceback's lines,
may hold a value.
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
    """What is noted of a request while it runs: for the log, metrics and problems.

    Nothing in it is secret: a credential is named by its id.
    """

    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    caller: str | None = None
    problem: str | None = None


_request: ContextVar[RequestContext | None] = ContextVar(
    "coterie_request", default=None
)


def begin_request() -> RequestContext:
    """Return the context of a request that begins now."""
    context = RequestContext()
    _request.set(context)
    return context


def current_request() -> RequestContext:
    """Return the context of the running request; outside of any, a new one."""
    return _request.get() or RequestContext()


class OwnWords(Exception):
    """An exception whose text is ours, and holds no value: it may be logged."""


def describe(error: BaseException) -> str:
    """Return kind, code and place of an exception; its text may hold a value.

    The code is the SQLSTATE of a database, or the name of the system's errno. A server
    that lets nobody in gives no code: there its reason is told, which names role and
    database, and comes before any statement.
    """
    if isinstance(error, OwnWords):
        return f"{type(error).__name__}: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {frame.filename}:{frame.lineno}" for frame in place)
    return f"{type(error).__name__}{_code(error)}{where}"


def _code(error: BaseException) -> str:
    cause = getattr(error, "orig", None)  # of SQLAlchemy's: what the driver raised
    if isinstance(error, OSError) and error.errno is not None:
        return f" {errno.errorcode.get(error.errno, f'errno {error.errno}')}"
    for name, shown in (("sqlstate", "SQLSTATE "), ("sqlite_errorname", "")):
        if code := getattr(cause, name, None):
            return f" {shown}{code}"
    if getattr(error, "statement", "") is None and hasattr(cause, "pgconn"):
        said = str(cause).splitlines()[:1]
        return "".join(f" ({line.rpartition(' failed: ')[2]})" for line in said)
    return ""


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON; ``extra={"fields": …}`` adds to it."""

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
        known = {name: value for name, value in entry.items() if value is not None}
        return json.dumps(known, default=str)


class TextLines(logging.Formatter):
    """Writes a record as one line for people: local time, level, message, fields."""

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
    """Let all loggers of this process write lines to standard output."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _error(record: logging.LogRecord) -> str | None:
    error = record.exc_info[1] if record.exc_info else None
    return describe(error) if error else None


# Who did what to this analyst: each act is one line. It names people by the id and the
# label of their principal; no key, token, row or payload is in it.

LOGGER: Final = "coterie.administration"
log = logging.getLogger(LOGGER)
log.setLevel(logging.INFO)  # whatever --log-level says

Field = str | int | bool | None


class Act(StrEnum):
    """What is logged."""

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
    """Who did it: the id of a principal, or a name below; and a label for people."""

    id: str
    label: str = ""


COMMAND: Final = "command"
"""The id of anyone who runs commands on the analyst's machine; the label is their login."""

SERVICE: Final = Actor("service")
STRANGER: Final = Actor("stranger")


def log_act(act: Act, actor: Actor, **fields: Field) -> None:
    """Log what somebody did; fields that are None are left out."""
    who = {"actor": actor.id, "label": actor.label or None}
    present = {k: v for k, v in {**who, **fields}.items() if v is not None}
    log.info(act.value, extra={"fields": present})


def log_when_committed(
    transaction: Transaction, act: Act, actor: Actor, **fields: Field
) -> None:
    """Log what somebody did once its transaction is committed, and else nothing."""
    from sqlalchemy import event  # a worker process logs, and has no database

    event.listen(
        transaction,
        "after_commit",
        lambda _transaction: log_act(act, actor, **fields),
        once=True,
    )
