"""What endpoints ask for: the service's parts, a transaction, the caller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Path, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from sqlalchemy.orm import Session as Transaction

from analyst_service import negotiation, request_context
from analyst_service.auth.service import AuthService, Caller
from analyst_service.blobs.files import FileBlobStore
from analyst_service.clock import Clock
from analyst_service.database import Database
from analyst_service.metrics import Metrics
from analyst_service.rate_limit import Rates
from analyst_service.settings import Settings
from analyst_service.wakeups import Notifier
from clustering_protocols import codec, json_form
from clustering_protocols.errors import NotFound, TooLarge, Unauthenticated
from clustering_protocols.terms import NAME_PATTERN

SessionID = Annotated[
    str, Path(pattern=NAME_PATTERN, description="Chosen by the coordinator.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The parts that live as long as the process."""

    settings: Settings
    clock: Clock
    database: Database
    blobs: FileBlobStore
    metrics: Metrics
    notifier: Notifier = field(default_factory=Notifier)
    rates: Rates = field(init=False)

    def __post_init__(self) -> None:
        each, burst = self.settings.requests_per_second, self.settings.request_burst
        object.__setattr__(self, "rates", Rates(each, burst))

    def blob(self, digest: str, asked: Mapping[str, str]) -> Response:
        """Return the response that sends a blob, in the form that a request asks for.

        Raises
        ------
        NotFound
            If it has been removed since the caller asked for it.
        TooLarge
            If it is over the limit of JSON.
        """
        if not self.blobs.has(digest):
            raise NotFound("It was removed when its session ended.")
        path = self.blobs.path(digest)
        if not negotiation.wants_json(asked):
            return FileResponse(path, media_type=codec.MEDIA_TYPE)
        size, limit = path.stat().st_size, self.settings.max_json_bytes
        if size > limit:
            raise TooLarge(
                f"{size} bytes; as JSON at most {limit}. Use the binary form: "
                f"'Accept: {codec.MEDIA_TYPE}'."
            )
        return JSONResponse(json_form.of_bytes(path.read_bytes()))


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service)]


def _reading(service: ServiceDep) -> Iterator[Transaction]:
    with service.database.read() as transaction:
        yield transaction


# Who writes asks Database.transact: a client that reads 2xx may rely on the commit.
Reading = Annotated[Transaction, Depends(_reading, scope="function")]


def _stranger(request: Request, service: ServiceDep) -> None:
    """Rate-limit an unauthenticated request by client address."""
    host = request.client.host if request.client else ""
    service.rates.take(f"address {host}", service.clock.now())


def _caller(request: Request, service: ServiceDep) -> Caller:
    with service.database.read() as transaction:
        auth = AuthService(transaction, service.clock)
        try:
            caller = auth.authenticate(request.headers.get("authorization"))
        except Unauthenticated:
            _stranger(request, service)
            raise
    request_context.current().caller = caller.credential_id
    service.rates.take(caller.credential_id, service.clock.now())
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]
StrangerDep = Depends(_stranger)
