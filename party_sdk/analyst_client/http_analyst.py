"""The analyst service over HTTP: each method calls one endpoint of ``analyst``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

import httpx
from pydantic import BaseModel

from clustering_protocols.numerics.profiles import Profile, Profiles
from clustering_protocols.terms.agreements import Member
from clustering_protocols.wire.answers import (
    AnalystIdentity,
    AuditPage,
    Codes,
    Joined,
    Preview,
    Receipt,
    ReceiverAdded,
    Receivers,
    SessionPage,
    SessionStatus,
)
from clustering_protocols.wire.http_headers import receipt_in, wait_header
from clustering_protocols.wire.states import SlotState, StopReason
from party_sdk.analyst_client import requests
from party_sdk.analyst_client.analyst import CoordinatedAnalyst
from party_sdk.analyst_client.connections import iterate_pages
from party_sdk.analyst_client.requests import parse_answer, raise_problem
from party_sdk.analyst_client.transport import NO_LISTENERS, Listeners, Transport

_M = TypeVar("_M", bound=BaseModel)

_STOP_SECONDS: Final = 10.0  # delays what the operator reads about the stop


def connect(
    address: str,
    *,
    patience: float = 300.0,
    listeners: Listeners = NO_LISTENERS,
    http: httpx.Client | None = None,
) -> HttpAnalyst:
    """Create a client for the analyst at an address.

    address: an https URL; plain http is accepted only for this machine itself.
    patience: seconds for which a request is retried while the analyst does not respond.
    listeners: callbacks for periods without a response.
    http: an HTTP client to use instead of a new one, for example in tests.

    Raises InvalidParameters if the address is invalid, or COTERIE_CA_FILE contains no
    certificate. Raises GuardRefused if the address is plain http on another machine.
    """
    return HttpAnalyst(Transport(address, patience, listeners, http))


class HttpAnalyst(CoordinatedAnalyst):
    """A client of the analyst service, authenticated as one caller.

    secret: a coordinator's key or a party's token.
    """

    def __init__(self, transport: Transport, secret: str | None = None) -> None:
        self._transport = transport
        self._secret = secret

    def close(self) -> None:
        self._transport.close()

    def as_party(self, token: str) -> HttpAnalyst:
        return HttpAnalyst(self._transport, token)

    def as_coordinator(self, key: str) -> HttpAnalyst:
        return HttpAnalyst(self._transport, key)

    def put_session(self, session: str, body: Mapping[str, Any]) -> SessionStatus:
        return self._call(SessionStatus, "PUT", f"/v1/sessions/{session}", json=body)

    def session(self, session: str) -> SessionStatus:
        return self._call(SessionStatus, "GET", f"/v1/sessions/{session}")

    def sessions(
        self, after: str = "", filters: Mapping[str, str] = MappingProxyType({})
    ) -> SessionPage:
        params = {**filters, "after": after}
        return self._call(SessionPage, "GET", "/v1/sessions", params=params)

    def cancel(self, session: str, reason: str = "") -> SessionStatus:
        body = {"json": {"reason": reason}} if reason else {}
        path = f"/v1/sessions/{session}/cancel"
        return self._call(SessionStatus, "POST", path, **body)

    def identity(self) -> str:
        return self._call(AnalystIdentity, "GET", "/v1/identity").key

    def audit(self, session: str) -> tuple[list[str], str]:
        def fetch_page(after: int) -> AuditPage:
            path, params = f"/v1/sessions/{session}/audit", {"after": str(after)}
            return self._call(AuditPage, "GET", path, params=params)

        pages = list(iterate_pages(fetch_page, 0, "lines"))
        signatures = [page.signature for page in pages if page.signature]
        return [line for page in pages for line in page.lines], (signatures or [""])[-1]

    def choose(self, session: str, n_clusters: int) -> SessionStatus:
        path, body = f"/v1/sessions/{session}/choice", {"n_clusters": n_clusters}
        return self._call(SessionStatus, "PUT", path, json=body)

    def extend(self, session: str, deadline: datetime) -> SessionStatus:
        path, body = (
            f"/v1/sessions/{session}/deadline",
            {"deadline": deadline.isoformat()},
        )
        return self._call(SessionStatus, "PUT", path, json=body)

    def profiles(self, session: str) -> tuple[Profile, ...]:
        path = f"/v1/sessions/{session}/profiles"
        return self._call(Profiles, "GET", path).profiles

    def delete(self, session: str) -> None:
        self._request("DELETE", f"/v1/sessions/{session}")

    def invite(self, session: str, slots: Sequence[str] | None) -> dict[str, str]:
        body = {"slots": None if slots is None else list(slots)}
        path = f"/v1/sessions/{session}/invitations"
        return self._call(Codes, "POST", path, json=body).codes

    def add_receiver(self, session: str, address: str) -> ReceiverAdded:
        path, body = _receivers_path(session), {"address": address}
        return self._call(ReceiverAdded, "POST", path, json=body)

    def receivers(self, session: str) -> Receivers:
        return self._call(Receivers, "GET", _receivers_path(session))

    def remove_receiver(self, session: str, receiver_id: str) -> None:
        self._request("DELETE", f"{_receivers_path(session)}/{receiver_id}")

    def preview(self, code: str) -> Preview:
        return self._call(Preview, "POST", "/v1/join/preview", json={"code": code})

    def join(self, code: str, member: Member, proof: str) -> str:
        entry = member.model_dump(mode="json")
        body = {"code": code, "member": entry, "proof": proof}
        return self._call(Joined, "POST", "/v1/join", json=body).token

    def decline(self, code: str, state: SlotState, reason: str) -> None:
        body = {"code": code, "state": state.value, "reason": reason}
        self._request("POST", "/v1/join/decline", json=body)

    def stop(self, session: str, reason: StopReason | None) -> None:
        path, body = f"/v1/sessions/{session}/stopped", {"reason": reason}
        patience = min(self._transport.patience, _STOP_SECONDS)
        self._request("POST", path, json=body, patience=patience)

    def agreement(self, session: str) -> bytes:
        return self._request("GET", f"/v1/sessions/{session}/agreement").content

    def task(self, session: str, wait: float) -> bytes | None:
        path = f"/v1/sessions/{session}/task"
        response = self._request("GET", path, params={"wait": str(wait)})
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
        path = f"/v1/sessions/{session}/rounds/{round_}/attempts/{attempt}/contribution"
        headers = requests.contribution_headers(content, digest)
        if wait:
            headers |= wait_header(wait)
        response = self._request("PUT", path, content=content, headers=headers)
        header = receipt_in(response.headers)
        if header is None:
            return parse_answer(Receipt, response.content), None
        return parse_answer(Receipt, header), response.content or None

    def result(self, session: str) -> bytes:
        return self._request("GET", f"/v1/sessions/{session}/result").content

    def _call(self, model: type[_M], method: str, path: str, **options: Any) -> _M:
        return parse_answer(model, self._request(method, path, **options).content)

    def _request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        **options: Any,
    ) -> httpx.Response:
        headers = {**requests.bearer_header(self._secret), **headers}
        response = self._transport.send(method, path, headers=headers, **options)
        raise_problem(response)
        return response


def _receivers_path(session: str) -> str:
    return f"/v1/sessions/{session}/receivers"
