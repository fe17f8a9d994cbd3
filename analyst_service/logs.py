"""Logs as JSON lines, one object per event, without values and secrets.

Exceptions are named by kind and place alone: their text, and a traceback's lines, may
hold a value.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

from analyst_service import request_context


def describe(error: BaseException) -> str:
    """Return kind and place of an exception; its text may hold a value."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {frame.filename}:{frame.lineno}" for frame in place)
    return f"{type(error).__name__}{where}"


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON; ``extra={"fields": …}`` adds to it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_context.current_id(),
            "error": _error(record),
            **getattr(record, "fields", {}),
        }
        known = {name: value for name, value in entry.items() if value is not None}
        return json.dumps(known, default=str)


def write_json_lines() -> None:
    """Let all loggers of this process write JSON lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _error(record: logging.LogRecord) -> str | None:
    error = record.exc_info[1] if record.exc_info else None
    return describe(error) if error else None
