"""What endpoints ask for: the service's parts, a transaction, the caller."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session as Transaction
from starlette.concurrency import run_in_threadpool

from analyst_service import negotiation, request_context
from analyst_service.auth.service import AuthService, Caller
from analyst_service.blobs.files import FileBlobStore
from analyst_service.clock import Clock
from analyst_service.database import Database
from analyst_service.metrics import Metrics
from analyst_service.middleware.pots import Visit, address
from analyst_service.rate_limit import Rates
from analyst_service.recent import Recent
from analyst_service.settings import Settings
from analyst_service.strict_json import JsonRequest
from analyst_service.wakeups import Notifier
from clustering_protocols import codec, json_form
from clustering_protocols.errors import (
    InvalidParameters,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
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
    ready: Recent[None] = field(init=False)
    figures: Recent[bytes] = field(init=False)

    def __post_init__(self) -> None:
        each, burst = self.settings.requests_per_second, self.settings.request_burst
        object.__setattr__(self, "rates", Rates(each, burst))
        object.__setattr__(self, "ready", Recent(self._check_ready))
        object.__setattr__(self, "figures", Recent(self.metrics.text))

    def require_offered(self, protocol: str) -> None:
        """Raise :class:`InvalidParameters` for a protocol that is hidden here."""
        if not self.settings.offers(protocol):
            raise InvalidParameters(f"The protocol {protocol!r} is not offered here.")

    def _check_ready(self) -> None:
        if not self.database.is_current():
            raise Unavailable("The database has the schema of another release.")
        self.blobs.draft().discard()

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


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller  # see AdmittingRoute
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]


class AdmittingRoute(APIRoute):
    """A route that knows who asks before a byte of the body is read.

    The framework would read and check the body first. Where the endpoint asks for a
    caller, the credential is looked up; elsewhere the request is a stranger's.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, over requests that are admitted and leave JSON unread."""
        handle = super().get_route_handler()
        is_open = all(part.call is not _caller for part in self.dependant.dependencies)

        async def admitted(request: Request) -> Response:
            if is_open:
                _count_stranger(request)
            else:
                caller = await run_in_threadpool(_authenticate, request)
                Visit.of(request.scope).name(caller.credential_id)
                request.state.caller = caller
            return await handle(JsonRequest(request.scope, request.receive))

        return admitted


def _authenticate(request: Request) -> Caller:
    service = _service(request)
    with service.database.read() as transaction:
        auth = AuthService(transaction, service.clock)
        try:
            caller = auth.authenticate(request.headers.get("authorization"))
        except Unauthenticated:
            _count_stranger(request)
            raise
    request_context.current().caller = caller.credential_id
    service.rates.take(caller.credential_id, service.clock.now())
    return caller


def _count_stranger(request: Request) -> None:
    """Count a request of somebody who shows no credential, by the address."""
    service = _service(request)
    service.rates.take(address(request.scope), service.clock.now())
