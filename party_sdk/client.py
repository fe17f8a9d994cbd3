"""The analyst's endpoints as methods; every refusal is an exception of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from clustering_protocols.agreements import Member
from clustering_protocols.errors import CoterieError, SessionOver, VersionMismatch
from clustering_protocols.explaining import explain
from clustering_protocols.problems import Problem
from clustering_protocols.profiles import Profile, Profiles
from clustering_protocols.wire import waiting
from clustering_protocols.wire.answers import (
    AnalystIdentity,
    AuditPage,
    Codes,
    Joined,
    Preview,
    Receipt,
    SessionPage,
    SessionStatus,
)
from clustering_protocols.wire.notices import ReceiverAdded, Receivers, Way
from clustering_protocols.wire.states import SlotState
from party_sdk import _requests
from party_sdk._transport import Transport
from party_sdk.pieces import PiecewiseUpload

LONG_POLL_SECONDS: Final = 20.0
"""For how long the analyst may hold a request of somebody who waits for a task."""

IN_PIECES_FROM: Final = 64 << 20
"""Contributions of so many bytes go in pieces, so that a cut costs one of them."""

_M = TypeVar("_M", bound=BaseModel)


def end_of(state: str, reason: str | None, detail: str | None) -> CoterieError:
    """Return the exception of a session that ended without a result."""
    text = f"{detail} The session is over: {state}." if detail else f"It is {state}."
    try:
        return CoterieError.of(Problem.of_slug(reason or ""), text)
    except KeyError:  # none, or one of a newer release
        return SessionOver(text, state, reason)


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
        return self._read(SessionStatus, "PUT", f"/v1/sessions/{session}", json=body)

    def session(self, session: str) -> SessionStatus:
        """Return where a session stands."""
        return self._read(SessionStatus, "GET", f"/v1/sessions/{session}")

    def sessions(
        self, after: str = "", filters: Mapping[str, str] = MappingProxyType({})
    ) -> SessionPage:
        """Return a page of sessions; an older analyst does not filter them."""
        params = {**filters, "after": after}
        return self._read(SessionPage, "GET", "/v1/sessions", params=params)

    def cancel(self, session: str, reason: str = "") -> SessionStatus:
        """End a session; an older analyst keeps no reason."""
        said = {"json": {"reason": reason}} if reason else {}
        path = f"/v1/sessions/{session}/cancel"
        return self._read(SessionStatus, "POST", path, **said)

    def identity(self) -> str:
        """Return the key under which the analyst says that it signs."""
        return self._read(AnalystIdentity, "GET", "/v1/identity").key

    def audit(self, session: str) -> tuple[list[str], str]:
        """Return all lines of a session's audit, and the signature under the last."""
        lines: list[str] = []
        signature = ""
        after: int | None = 0
        while after is not None:
            path, params = f"/v1/sessions/{session}/audit", {"after": str(after)}
            page = self._read(AuditPage, "GET", path, params=params)
            lines += page.lines
            signature = page.signature or signature
            after = page.next
        return lines, signature

    def choose(self, session: str, n_clusters: int) -> SessionStatus:
        """Choose the run that counts; return where the session stands."""
        path, body = f"/v1/sessions/{session}/choice", {"n_clusters": n_clusters}
        return self._read(SessionStatus, "PUT", path, json=body)

    def extend(self, session: str, deadline: datetime) -> SessionStatus:
        """Let a session wait longer; return where it stands."""
        path, body = (
            f"/v1/sessions/{session}/deadline",
            {"deadline": deadline.isoformat()},
        )
        return self._read(SessionStatus, "PUT", path, json=body)

    def profiles(self, session: str) -> tuple[Profile, ...]:
        """Return what the clusters are like, where everybody may read it."""
        path = f"/v1/sessions/{session}/profiles"
        return self._read(Profiles, "GET", path).profiles

    def delete(self, session: str) -> None:
        """Remove all of a session but its audit; repeating it changes nothing."""
        self._send("DELETE", f"/v1/sessions/{session}")

    def invite(self, session: str, slots: Sequence[str] | None) -> dict[str, str]:
        """Return one-time codes by slot."""
        body = {"slots": None if slots is None else list(slots)}
        path = f"/v1/sessions/{session}/invitations"
        return self._read(Codes, "POST", path, json=body).codes

    def add_receiver(self, session: str, way: Way, address: str) -> ReceiverAdded:
        """Leave an address to be told at; return its id and secret."""
        path, body = _receivers(session), {"way": way.value, "address": address}
        return self._read(ReceiverAdded, "POST", path, json=body)

    def receivers(self, session: str) -> Receivers:
        """Return the caller's addresses."""
        return self._read(Receivers, "GET", _receivers(session))

    def remove_receiver(self, session: str, receiver_id: str) -> None:
        """Have an address told no more; repeating it changes nothing."""
        self._send("DELETE", f"{_receivers(session)}/{receiver_id}")

    def preview(self, code: str) -> Preview:
        """Return what a code is for; nothing is used up."""
        return self._read(Preview, "POST", "/v1/join/preview", json={"code": code})

    def join(self, code: str, member: Member, proof: str) -> str:
        """Take the slot of a code and return the party's token."""
        line = member.model_dump(mode="json")
        body = {"code": code, "member": line, "proof": proof}
        return self._read(Joined, "POST", "/v1/join", json=body).token

    def decline(self, code: str, state: SlotState, reason: str) -> None:
        """Say why the party of a code does not join: refused by a check, or declined."""
        body = {"code": code, "state": state.value, "reason": reason}
        self._send("POST", "/v1/join/decline", json=body)

    def agreement(self, session: str) -> bytes:
        """Return the exact bytes of the agreement."""
        return self._send("GET", f"/v1/sessions/{session}/agreement").content

    def task(self, session: str, wait: float) -> bytes | None:
        """Return the open task, or None if there was none for ``wait`` seconds."""
        path = f"/v1/sessions/{session}/task"
        response = self._send("GET", path, params={"wait": str(wait)})
        return response.content if response.status_code == httpx.codes.OK else None

    def contribute(
        self,
        session: str,
        round_: int,
        attempt: int,
        content: bytes,
        wait: float = 0,
        *,
        digest: str = "",
    ) -> tuple[Receipt, bytes | None]:
        """Send a contribution; return the receipt, and the next task if there is one.

        An analyst that knows no waiting gives no task.

        Parameters
        ----------
        wait : float
            For how many seconds the analyst may wait for the next task.
        digest : str, optional
            SHA-256 (hex) of the content, where it is known.
        """
        path = f"/v1/sessions/{session}/rounds/{round_}/attempts/{attempt}/contribution"
        preferring = waiting.prefer(wait) if wait else {}
        response = None
        if self._transport.takes_pieces and len(content) >= IN_PIECES_FROM:
            response = self._in_pieces(path, content).send_all(preferring)
        if response is None:
            headers = _requests.contribution_headers(content, digest) | preferring
            response = self._send("PUT", path, content=content, headers=headers)
        told = waiting.receipt_in(response.headers)
        if told is None:
            return _parsed(Receipt, response.content), None
        return _parsed(Receipt, told), response.content or None

    def _in_pieces(self, path: str, content: bytes) -> PiecewiseUpload:
        return PiecewiseUpload(
            send=self._send,
            path=f"{path}/upload",
            content=content,
            patience=self._transport.patience,
            on_resumed=self._transport.on_resumed,
        )

    def result(self, session: str) -> bytes:
        """Return the caller's result."""
        return self._send("GET", f"/v1/sessions/{session}/result").content

    def _read(self, model: type[_M], method: str, path: str, **sent: Any) -> _M:
        """Send, and return what the answer says; raises as :func:`_parsed` does."""
        return _parsed(model, self._send(method, path, **sent).content)

    def _send(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> httpx.Response:
        response = self._transport.send(
            method,
            path,
            json=json,
            content=content,
            params=params,
            headers={**_requests.bearer(self._secret), **(headers or {})},
            patience=patience,
        )
        _requests.raise_problem(response)
        return response


def _receivers(session: str) -> str:
    return f"/v1/sessions/{session}/receivers"


def _parsed(model: type[_M], content: bytes) -> _M:
    """Return what an answer says.

    Raises
    ------
    VersionMismatch
        If it is none that this release reads, a state of a newer one for example.
    """
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise VersionMismatch(f"The analyst's answer: {explain(error)}") from None
