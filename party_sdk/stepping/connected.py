"""The connected machine: it fetches what is asked, and sends what was answered."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Self

import httpx
from pydantic import BaseModel, Field

from clustering_protocols.errors import (
    CoterieError,
    GuardRefused,
    KeyNotAuthentic,
    NotReady,
)
from clustering_protocols.wire.answers import Joined, SessionStatus
from clustering_protocols.wire.states import SessionState
from party_sdk import _requests
from party_sdk._files import private_folder
from party_sdk._transport import Transport
from party_sdk.client import LONG_POLL_SECONDS
from party_sdk.invitations import Invitation
from party_sdk.sealing import SecretFiles
from party_sdk.stepping.files import AnswerFile, Said, TaskFile

_PREVIEW = "/v1/join/preview"
_JOIN = "/v1/join"
_CONTRIBUTION = r"/rounds/[0-9]{1,10}/attempts/[0-9]{1,10}/contribution"
_GONE_ON = frozenset({"round-closed", "session-over"})
"""Refusals that the machine without network has to read: the session went on."""


class _Kept(BaseModel):
    """What the connected machine keeps; secrets of the join, and none of the group.

    ``key`` is that of the institution that joined, ``preview`` what the analyst said of
    the invitation (who joins reads it twice), ``sent`` the digest of the last answer that
    was sent, ``told`` what the analyst said to it.
    """

    url: str
    code: str = Field(repr=False)
    token: str | None = Field(default=None, repr=False)
    number: int = 0
    key: str | None = None
    preview: str = ""
    sent: str = ""
    told: dict[str, str] | None = None


class Connected:
    """One party, seen from the connected machine.

    Parameters
    ----------
    home : Path
    session, slot : str
    """

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self.session, self.slot = session, slot
        self._path = home / "parties" / session / slot / "carrier.json"
        self._files = SecretFiles(home)

    @classmethod
    def of(cls, home: Path, invitation: str) -> Self:
        """Return the party of an invitation; its session secret is not kept here."""
        parsed = Invitation.parse(invitation)
        found = cls(home, parsed.session, parsed.slot)
        if not found._path.exists():
            found._save(_Kept(url=parsed.url, code=parsed.code))
        return found

    @property
    def url(self) -> str:
        """Return the analyst's address."""
        return self._load().url

    def fetch(self, transport: Transport) -> TaskFile:
        """Return what the analyst says now.

        Raises
        ------
        NotReady
            If nothing is asked of this party now: others are awaited.
        """
        kept = self._load()
        joins = json.dumps({"code": kept.code}).encode()
        if kept.token is None:
            preview = self._ask(transport, "POST", _PREVIEW, joins)
            kept = kept.model_copy(update={"preview": preview.body.decode()})
            said = []
        else:
            said = self._where_it_stands(transport, kept.token)
            preview = Said(
                method="POST",
                path=_PREVIEW,
                status=200,
                media_type="application/json",
                body=kept.preview.encode(),
            )
        said.append(preview)
        if kept.told is not None:
            said.append(_read_told(kept.told))
        number = kept.number + 1
        self._save(kept.model_copy(update={"number": number}))
        return TaskFile(
            session=self.session,
            slot=self.slot,
            number=number,
            has_joined=kept.token is not None,
            said=tuple(said),
        )

    def send(self, answer: AnswerFile, transport: Transport) -> str:
        """Send an answer; return in a few words what became of it.

        Raises
        ------
        GuardRefused
            If it is of another session, answers an older file, or was sent already.
        KeyNotAuthentic
            If another institution signed it than the one that joined.
        CoterieError
            If the analyst refuses it.
        """
        kept = self._load()
        digest = sha256(answer.body).hexdigest()
        self._check(kept, answer, digest)
        headers = dict(_requests.bearer(kept.token))
        if answer.method == "PUT":
            headers |= _requests.contribution_headers(answer.body)
        else:
            headers["Content-Type"] = answer.media_type
        response = transport.send(
            answer.method, answer.path, headers=headers, content=answer.body
        )
        fresh = {"sent": digest, "key": answer.key}
        try:
            _requests.raise_problem(response)
        except CoterieError as error:
            if error.problem.slug not in _GONE_ON:
                raise
            told = _told(answer, response, digest)
            self._save(kept.model_copy(update={**fresh, "told": told}))
            return "the session went on without it: fetch what is next"
        if answer.path == _JOIN:
            token = Joined.model_validate_json(response.content).token
            self._save(kept.model_copy(update={**fresh, "token": token}))
            return "your slot is taken"
        told = _told(answer, response, digest)
        self._save(kept.model_copy(update={**fresh, "told": told}))
        return "sent, and acknowledged"

    def _check(self, kept: _Kept, answer: AnswerFile, digest: str) -> None:
        here, there = (self.session, self.slot), (answer.session, answer.slot)
        if here != there:
            raise GuardRefused(
                f"This answer is of {' '.join(there)}, not of {' '.join(here)}."
            )
        if kept.sent == digest:
            raise GuardRefused("This answer was sent already: fetch what is next.")
        if answer.number != kept.number:
            raise GuardRefused(
                f"This answers file number {answer.number}; the last that was fetched "
                f"is number {kept.number}: answer that one."
            )
        if kept.key not in {None, answer.key}:
            raise KeyNotAuthentic(
                "Another institution signed this answer than the one that joined."
            )
        place = rf"/v1/sessions/{re.escape(self.session)}{_CONTRIBUTION}"
        if not (
            (answer.method, answer.path) == ("POST", _JOIN)
            or (answer.method == "PUT" and re.fullmatch(place, answer.path))
        ):
            raise GuardRefused("This answer asks for what a party does not send.")

    def _where_it_stands(self, transport: Transport, token: str) -> list[Said]:
        place = f"/v1/sessions/{self.session}"
        bearer = _requests.bearer(token)
        params = {"wait": str(LONG_POLL_SECONDS)}
        task = transport.send("GET", f"{place}/task", headers=bearer, params=params)
        status = self._ask(transport, "GET", place, token=token)
        now = SessionStatus.model_validate_json(status.body)
        said = [status]
        if now.all_joined and not now.over:
            said.append(self._ask(transport, "GET", f"{place}/agreement", token=token))
        if now.state is SessionState.COMPLETED:
            said.append(self._ask(transport, "GET", f"{place}/agreement", token=token))
            said.append(self._ask(transport, "GET", f"{place}/result", token=token))
        elif not now.over:
            if task.status_code != httpx.codes.OK:
                _requests.raise_problem(task)
                awaited = ", ".join(now.awaited) or "the analyst"
                raise NotReady(f"Nothing is asked of you now; awaited: {awaited}.")
            _requests.raise_problem(task)
        said.append(_said("GET", f"{place}/task", task))
        return said

    def _ask(
        self,
        transport: Transport,
        method: str,
        path: str,
        content: bytes | None = None,
        token: str | None = None,
    ) -> Said:
        headers = dict(_requests.bearer(token))
        if content is not None:
            headers["Content-Type"] = "application/json"
        response = transport.send(method, path, headers=headers, content=content)
        _requests.raise_problem(response)
        return _said(method, path, response)

    def _load(self) -> _Kept:
        try:
            return _Kept.model_validate_json(self._files.read(self._path))
        except FileNotFoundError:
            raise NotReady(
                f"Nothing is kept of {self.session} {self.slot} here: fetch with the "
                "invitation first."
            ) from None

    def _save(self, kept: _Kept) -> None:
        private_folder(self._path.parent)
        self._files.write(self._path, kept.model_dump_json().encode())


def _said(method: str, path: str, response: httpx.Response) -> Said:
    return Said(
        method=method,
        path=path,
        status=response.status_code,
        media_type=response.headers.get("content-type", ""),
        body=response.content,
    )


def _told(answer: AnswerFile, response: httpx.Response, digest: str) -> dict[str, str]:
    return {
        "path": answer.path,
        "digest": digest,
        "status": str(response.status_code),
        "media_type": response.headers.get("content-type", ""),
        "body": response.text,
    }


def _read_told(told: dict[str, str]) -> Said:
    """Return what the analyst said to an answer; it names the answer by its digest."""
    return Said(
        method=f"PUT {told['digest']}",
        path=told["path"],
        status=int(told["status"]),
        media_type=told["media_type"],
        body=told["body"].encode(),
    )
