"""A folder of invitations: each is moved into its party's folder, and becomes an order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from clustering_protocols.common.errors import CoterieError, InvalidParameters
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.supervisor.files import OrderFiles
from party_sdk.supervisor.models import Order
from party_sdk.supervisor.orders import Orders
from party_sdk.supervisor.strangers import check_stranger

_ENDING = ".invitation"
_MOST_BYTES = 65_536


class Inbox:
    """Takes files that end in ``.invitation``, as ``session create`` writes them."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder, self._home = folder, home
        self._named: set[tuple[str, int, int]] = set()

    def take(self) -> Iterator[str]:
        """Take what has come; yield a line about each file, once.

        A file that is no invitation stays where it is, and stops no other.
        """
        try:
            found = sorted(self._folder.iterdir())
        except OSError:
            found = []
        for path in found:
            if path.suffix == _ENDING and (line := self._take_file(path)):
                yield line

    def _take_file(self, path: Path) -> str:
        try:
            about = path.lstat()
        except OSError:
            return ""
        mark = (path.name, about.st_size, about.st_mtime_ns)
        if mark in self._named:
            return ""
        try:
            return self._place(path, about.st_mode, about.st_size)
        except (CoterieError, OSError) as error:
            self._named.add(mark)
            said = error.detail if isinstance(error, CoterieError) else "unreadable."
            return f"{path.name!r} stays in the inbox: {said}"

    def _place(self, path: Path, mode: int, size: int) -> str:
        if not stat.S_ISREG(mode) or size > _MOST_BYTES:
            raise InvalidParameters("this is no invitation.")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, errors="replace") as file:
            invitation = Invitation.parse(file.read(_MOST_BYTES))
        files = OrderFiles(self._home, invitation.session, invitation.slot)
        if not files.exists:
            check_stranger(self._home, invitation)
            order = Order(invitation=str(invitation))
            Orders(self._home).place(order)
        elif files.order().invitation != str(invitation):
            raise InvalidParameters(
                f"there is an order for {invitation.session} {invitation.slot} already, "
                "with another invitation."
            )
        path.unlink()
        return f"{invitation.session} {invitation.slot}: taken from the inbox"
