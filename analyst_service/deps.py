"""What endpoints ask for: the service's parts, a transaction, the caller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request
from sqlalchemy.orm import Session as Unit

from analyst_service.auth.service import AuthService, Caller
from analyst_service.blobs.files import FileBlobStore
from analyst_service.clock import Clock
from analyst_service.database import Database
from analyst_service.settings import Settings
from clustering_protocols.terms import NAME_PATTERN

SessionID = Annotated[
    str, Path(pattern=NAME_PATTERN, description="Chosen by the coordinator.")
]


@dataclass(frozen=True, slots=True)
class Service:
    """The parts that live as long as the process."""

    settings: Settings
    clock: Clock
    database: Database
    blobs: FileBlobStore


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service)]


def _reading(service: ServiceDep) -> Iterator[Unit]:
    with service.database.read() as unit:
        yield unit


def _writing(service: ServiceDep) -> Iterator[Unit]:
    with service.database.write() as unit:
        yield unit


# With the scope "function" the commit happens before the response is sent: a client
# that reads 2xx may rely on it.
Reading = Annotated[Unit, Depends(_reading, scope="function")]
Writing = Annotated[Unit, Depends(_writing, scope="function")]


def _caller(request: Request, service: ServiceDep) -> Caller:
    with service.database.read() as unit:
        auth = AuthService(unit, service.clock)
        return auth.authenticate(request.headers.get("authorization"))


CallerDep = Annotated[Caller, Depends(_caller)]
