"""Lines of the administrative log as messages of syslog (RFC 5424)."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Mapping
from logging.handlers import SysLogHandler
from typing import Any, Final

from clustering_protocols.common.errors import InvalidParameters

_SERVER: Final = re.compile(
    r"(?:\[(?P<v6>[0-9a-fA-F:]+)\]|(?P<host>[^\s/:@]+)):(?P<port>[0-9]{1,5})"
)
_REFUSED: Final = "-refused"


class Syslog(SysLogHandler):
    """Sends lines to the machine's own daemon, or to a server by TCP.

    Facility ``authpriv``; severity ``warning`` for what was refused, else ``info``. The
    message is the line itself, so that a receiver can check the chain.

    address: path of a datagram socket, such as ``/dev/log``, or ``HOST:PORT``. By TCP a
        message ends with a new line (RFC 6587).

    Raises InvalidParameters if the address has neither form.
    Raises OSError if nobody listens there.
    """

    append_nul = False

    def __init__(self, address: str) -> None:
        place, kind = _read(address)
        super().__init__(place, self.LOG_AUTHPRIV, kind)
        self._end = "\n" if kind is socket.SOCK_STREAM else ""
        self._host = re.sub(r"[^!-~]", "-", socket.gethostname())[:255] or "-"

    def send(self, line: str, entry: Mapping[str, Any]) -> None:
        """Send a line, and what it says; :class:`OSError` where that fails."""
        level = logging.WARNING if entry["event"].endswith(_REFUSED) else logging.INFO
        text = f"1 {entry['at']} {self._host} coterie - {entry['event']} - {line}"
        self.emit(
            logging.LogRecord(__name__, level, "", 0, text + self._end, None, None)
        )

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging calls it so
        """Raise what failed: the line is sent again later."""
        del record
        raise  # noqa: PLE0704  within the handler of the base class


def _read(address: str) -> tuple[str | tuple[str, int], socket.SocketKind]:
    if address.startswith("/"):
        return address, socket.SOCK_DGRAM
    if (server := _SERVER.fullmatch(address)) is None:
        raise InvalidParameters(
            f"{address!r} is no address of syslog: /dev/log, or HOST:PORT (TCP)."
        )
    return (server["v6"] or server["host"], int(server["port"])), socket.SOCK_STREAM
