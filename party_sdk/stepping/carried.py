"""The machine without network: the party itself, whose analyst is a file."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Any, Final

import httpx

from clustering_protocols import packets
from clustering_protocols.errors import GuardRefused, Unavailable
from party_sdk._files import private_folder, write_private
from party_sdk._transport import Transport
from party_sdk.memory import PartyFolder
from party_sdk.stepping.files import AnswerFile, Said, TaskFile

_JOIN: Final = "/v1/join"
_DECLINE: Final = "/v1/join/decline"
_ARRAYS: Final = "application/vnd.coterie.arrays"
_IN_PLACE_OF_A_TOKEN: Final = "kept on the connected machine"  # noqa: S105  a sentence, no secret


class Leaving(Exception):
    """Something is to be sent: ``answer`` goes to the connected machine."""

    def __init__(self, answer: AnswerFile) -> None:
        super().__init__()
        self.answer = answer


class NothingMore(Exception):
    """The file says nothing more: the next one has to be fetched."""


class Carried(Transport):
    """Answers what a party asks from a file, and stops where something is to be sent."""

    takes_pieces = False  # a file holds one request

    def __init__(self, task: TaskFile) -> None:
        self._task = task
        self._said = list(task.said)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> httpx.Response:
        """Return what the analyst said to the same request, as far as the file knows.

        Raises
        ------
        Leaving
            If this is to be sent.
        NothingMore
            If the file does not say.
        """
        del headers, params, patience
        if path == _DECLINE:
            raise Unavailable(
                "This machine has no network: what a file asks is answered by a file.",
                remedy="Tell the coordinator yourself that you do not join.",
            )
        if (method, path) == ("POST", _JOIN):
            return self._join(dumps(json).encode())
        if method == "PUT":
            return self._contribute(path, content or b"")
        for each in self._said:
            if (each.method, each.path) == (method, path):
                if path.endswith("/task"):
                    self._said.remove(each)  # what is answered is not asked again
                return _response(each)
        raise NothingMore

    def _join(self, body: bytes) -> httpx.Response:
        if not self._task.has_joined:
            raise Leaving(self._leaving("POST", _JOIN, "application/json", body))
        joined = {"session": self._task.session, "slot": self._task.slot}
        return httpx.Response(201, json={**joined, "token": _IN_PLACE_OF_A_TOKEN})

    def _contribute(self, path: str, body: bytes) -> httpx.Response:
        method = f"PUT {sha256(body).hexdigest()}"
        for each in self._said:
            if (each.method, each.path) == (method, path):
                return _response(each)
        raise Leaving(self._leaving("PUT", path, _ARRAYS, body))

    def _leaving(
        self, method: str, path: str, media_type: str, body: bytes
    ) -> AnswerFile:
        return AnswerFile(
            session=self._task.session,
            slot=self._task.slot,
            number=self._task.number,
            method=method,
            path=path,
            media_type=media_type,
            body=body,
        )


class Turns:
    """Which files a party has answered: none is answered twice, none that is older."""

    def __init__(self, folder: PartyFolder) -> None:
        self._folder = folder
        self._path = folder.path / "step"

    def check(self, task: TaskFile) -> None:
        """Refuse a file of another party, or one that comes too late.

        Raises
        ------
        GuardRefused
            Nothing has changed: the right file can still come.
        """
        here = (self._folder.session, self._folder.slot)
        if here != (task.session, task.slot):
            raise GuardRefused(
                f"This file is for {task.session} {task.slot}, not for "
                f"{' '.join(here)}."
            )
        last = int(self._path.read_text()) if self._path.exists() else 0
        if task.number <= last:
            raise GuardRefused(
                f"This is file number {task.number}, and number {last} was answered "
                "already: fetch again, and bring that file."
            )
        asked = next((s for s in task.said if s.path.endswith("/task")), None)
        if asked is None or asked.status != httpx.codes.OK:
            return
        address = packets.read(asked.body).address
        if not self._folder.exists:
            return
        last = self._folder.load_standing().answered.round
        if address.round < last:
            raise GuardRefused(
                f"This file asks for round {address.round}, and round {last} was "
                "answered already."
            )

    def count(self, task: TaskFile) -> None:
        """Note that a file was answered."""
        private_folder(self._folder.path)
        write_private(self._path, str(task.number).encode())


def read_file(path: Path) -> bytes:
    """Return the bytes of a file that was carried; :class:`GuardRefused` if none is."""
    try:
        return path.read_bytes()
    except OSError:
        raise GuardRefused(f"{path.name!r} cannot be read.") from None


def _response(said: Said) -> httpx.Response:
    headers = {"content-type": said.media_type}
    return httpx.Response(said.status, headers=headers, content=said.body)
