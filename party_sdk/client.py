"""The analyst's endpoints as methods; every refusal is an exception of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import httpx
from pydantic import BaseModel, Field

from clustering_protocols.errors import CoterieError, SessionOver
from clustering_protocols.problems import Problem
from clustering_protocols.terms import Member
from party_sdk import _requests
from party_sdk._transport import Transport


class SlotStatus(BaseModel):
    """One slot of a session."""

    name: str
    row: int
    column: int
    joined_at: datetime | None
    n_rows: int | None
    awaited: bool


class SessionStatus(BaseModel):
    """Where a session stands; fields that a newer analyst adds are ignored."""

    id: str
    title: str
    protocol: str
    state: str
    reason: str | None = None
    detail: str | None = None
    round: int
    attempt: int
    stage: str | None = None
    stage_index: int
    n_stages: int
    progress: dict[str, Any] = {}
    slots: list[SlotStatus]
    waiting_since: datetime
    deadline: datetime
    risks: list[str]
    terms_digest: str

    @property
    def awaited(self) -> list[str]:
        """Return the names of the slots for which the session waits."""
        return [slot.name for slot in self.slots if slot.awaited]

    @property
    def all_joined(self) -> bool:
        """Return whether every slot is taken, so that there is an agreement."""
        return all(slot.joined_at for slot in self.slots)

    @property
    def over(self) -> bool:
        """Return whether the session has ended, well or not."""
        return self.state not in {"recruiting", "collecting", "stepping"}


def end_of(state: str, reason: str | None, detail: str | None) -> CoterieError:
    """Return the exception of a session that ended without a result."""
    text = detail or f"It is {state}."
    try:
        return CoterieError.of(Problem.of_slug(reason or ""), text)
    except KeyError:  # none, or one of a newer release
        return SessionOver(text, state, reason)


class Preview(BaseModel):
    """What an invitation is for."""

    session: str
    slot: str
    state: str
    terms: str
    risks: dict[str, str]
    joins: int = Field(ge=0, lt=2**31)


class AnalystClient:
    """One caller's view of an analyst.

    Parameters
    ----------
    transport : Transport
    secret : str, optional
        A coordinator's key or a party's token.
    """

    def __init__(self, transport: Transport, secret: str | None = None) -> None:
        self._transport = transport
        self._secret = secret

    def as_party(self, token: str) -> AnalystClient:
        """Return the same analyst, seen with a party's token."""
        return AnalystClient(self._transport, token)

    def put_session(self, session: str, body: Mapping[str, Any]) -> SessionStatus:
        """Open a session; repeating it changes nothing."""
        return self._status("PUT", f"/v1/sessions/{session}", body)

    def session(self, session: str) -> SessionStatus:
        """Return where a session stands."""
        return self._status("GET", f"/v1/sessions/{session}")

    def sessions(self, after: str = "") -> tuple[list[dict[str, Any]], str | None]:
        """Return a page of sessions and the cursor of the next."""
        page = self._send("GET", "/v1/sessions", params={"after": after}).json()
        return page["sessions"], page["next"]

    def cancel(self, session: str) -> SessionStatus:
        """End a session."""
        return self._status("POST", f"/v1/sessions/{session}/cancel")

    def audit(self, session: str) -> list[str]:
        """Return all lines of a session's audit."""
        lines: list[str] = []
        after: int | None = 0
        while after is not None:
            path, params = f"/v1/sessions/{session}/audit", {"after": str(after)}
            page = self._send("GET", path, params=params).json()
            lines += page["lines"]
            after = page["next"]
        return lines

    def delete(self, session: str) -> None:
        """Remove all of a session but its audit; repeating it changes nothing."""
        self._send("DELETE", f"/v1/sessions/{session}")

    def invite(self, session: str, slots: Sequence[str] | None) -> dict[str, str]:
        """Return one-time codes by slot."""
        body = {"slots": None if slots is None else list(slots)}
        path = f"/v1/sessions/{session}/invitations"
        codes: dict[str, str] = self._send("POST", path, json=body).json()["codes"]
        return codes

    def preview(self, code: str) -> Preview:
        """Return what a code is for; nothing is used up."""
        response = self._send("POST", "/v1/join/preview", json={"code": code})
        return Preview.model_validate_json(response.content)

    def join(self, code: str, member: Member, proof: str) -> str:
        """Take the slot of a code and return the party's token."""
        line = member.model_dump(mode="json")
        body = {"code": code, "member": line, "proof": proof}
        token: str = self._send("POST", "/v1/join", json=body).json()["token"]
        return token

    def agreement(self, session: str) -> bytes:
        """Return the exact bytes of the agreement."""
        return self._send("GET", f"/v1/sessions/{session}/agreement").content

    def task(self, session: str, wait: float) -> bytes | None:
        """Return the open task, or None if there was none for ``wait`` seconds."""
        path = f"/v1/sessions/{session}/task"
        response = self._send("GET", path, params={"wait": str(wait)})
        return response.content if response.status_code == httpx.codes.OK else None

    def contribute(
        self, session: str, round_: int, attempt: int, content: bytes
    ) -> dict[str, Any]:
        """Send a contribution and return the analyst's receipt."""
        path = f"/v1/sessions/{session}/rounds/{round_}/attempts/{attempt}/contribution"
        headers = _requests.contribution_headers(content)
        response = self._send("PUT", path, content=content, headers=headers)
        receipt: dict[str, Any] = response.json()
        return receipt

    def result(self, session: str) -> bytes:
        """Return the caller's result."""
        return self._send("GET", f"/v1/sessions/{session}/result").content

    def _status(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> SessionStatus:
        response = self._send(method, path, json=body)
        return SessionStatus.model_validate_json(response.content)

    def _send(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        response = self._transport.send(
            method,
            path,
            json=json,
            content=content,
            params=params,
            headers={**_requests.bearer(self._secret), **(headers or {})},
        )
        _requests.raise_problem(response)
        return response
