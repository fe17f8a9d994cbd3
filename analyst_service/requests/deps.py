"""What endpoints ask for: the parts of the process and the caller.

No transaction: an endpoint opens its own and ends it before it returns. The framework
takes a thread of its pool for the endpoint and another one for its answer. A connection
that is kept from one to the other waits for a thread, while the threads wait for
connections. Who writes asks Database.transact: a client that reads 2xx may rely on the
commit.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Response
from fastapi.routing import APIRoute

from analyst_service.auth.service import AuthService, Caller, CredentialRefused
from analyst_service.middleware.request_limits import Visit, address
from analyst_service.monitoring.logs import current_request
from analyst_service.process_context import Service
from analyst_service.requests.strict_json import JsonRequest
from clustering_protocols.common.errors import CoterieError, Unauthenticated
from clustering_protocols.common.limits import NAME_PATTERN

SessionID = Annotated[
    str, Path(pattern=NAME_PATTERN, description="Chosen by the coordinator.")
]


# `async` where nothing waits: the framework runs other functions in threads, and the
# way there and back costs more than such a function.
async def _service(request: Request) -> Service:
    return parts_of(request)


def parts_of(request: Request) -> Service:
    """Return the parts of the process that answers a request."""
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service)]


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller  # see AdmittingRoute
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]


class AdmittingRoute(APIRoute):
    """A route that knows who asks before a byte of the body is read.

    The framework would read and check the body first. Where the endpoint asks for a
    caller, the credential is looked up; elsewhere the request is a stranger's.
    """

    @property
    def needs_caller(self) -> bool:
        """Return whether the endpoint asks for a credential."""
        return any(part.call is _caller for part in self.dependant.dependencies)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, over requests that are admitted and leave JSON unread."""
        handle = super().get_route_handler()
        is_open = not self.needs_caller

        async def admit(request: Request) -> Response:
            if is_open:
                _count_stranger(request)
            else:
                caller = await _authenticate(request)
                Visit.of(request.scope).name(caller.credential_id)
                request.state.caller = caller
            return await handle(JsonRequest(request.scope, request.receive))

        return admit


async def _authenticate(request: Request) -> Caller:
    service = parts_of(request)
    shown = request.headers.get("authorization")
    try:
        caller = await service.authenticating.do(partial(_look_up, service), shown)
    except Unauthenticated as error:
        if isinstance(error, CredentialRefused):
            current_request().caller = error.credential_id  # of what counted once
        _count_stranger(request)
        raise
    current_request().caller = caller.credential_id
    service.count(caller.credential_id)
    return caller


def _look_up(
    service: Service, shown: Sequence[str | None]
) -> list[Caller | CoterieError]:
    """Return who shows these headers, or that nobody does: see Together."""
    with service.database.read() as transaction:
        return AuthService(transaction, service.clock).authenticate_all(shown)


def _count_stranger(request: Request) -> None:
    """Count a request of somebody who shows no credential, by the address."""
    service = parts_of(request)
    service.rates.take(address(request.scope), service.clock.now())
