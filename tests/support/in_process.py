"""The service in this process: without a socket or threads, on a clock that tests set."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from anyio.from_thread import BlockingPortal, start_blocking_portal

from analyst_service import app as application, worker
from analyst_service.credentials import Caller, Role, authenticate, create_key
from analyst_service.database import Database
from analyst_service.driver import Driver
from analyst_service.models import Base
from analyst_service.process_context import Service
from analyst_service.session_endpoints import SessionWrite
from analyst_service.settings import Settings
from analyst_service.worker import WorkerProcess
from clustering_protocols import engine, simulation
from clustering_protocols.catalogue import find_protocol_name
from clustering_protocols.contract import Params
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.records import hash_chain
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.session_terms import draw_up_terms
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.canonical import digest
from coterie import Coordinator, Party, Policy
from party_sdk.analyst_client import requests
from party_sdk.analyst_client.http_analyst import HttpAnalyst, connect
from party_sdk.analyst_client.invitations import Invitation
from support.databases import write_current_file

ACCEPTING = Policy(
    accepted_risks=frozenset({"dummy.by-design", "house.open-slot"}), least_known=0
)
"""Takes part in sessions of the dummy protocol whose slots stand open."""


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def synchronise(self) -> None:
        pass

    def forward(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Inline(WorkerProcess):
    """Runs a step in the thread that submits it."""

    def __init__(self) -> None:
        pass

    def submit(self, job: worker.Job) -> Future[worker.Outcome]:
        future: Future[worker.Outcome] = Future()
        future.set_result(worker.run_step_safely(job))
        return future

    def kill(self) -> None:
        pass


class HandDriver(Driver):
    """A driver without processes: a thread if entered, else driven by :meth:`turn`."""

    def _start_process(self) -> Inline:
        return Inline()

    def turn(self) -> None:
        self._start_processes()
        self._start_steps()
        self._collect_outcomes()
        self._wake_waiting_requests()


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: httpx.SyncByteStream) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


class InProcess(httpx.BaseTransport):
    """Sends the requests of a client, from any thread, to an app in this process."""

    def __init__(self, app: Any, portal: BlockingPortal) -> None:
        self.inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.portal = portal

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self.portal.call(self._send, request)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        inner = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            stream=_Pieces(request.stream),
            extensions=request.extensions,
        )
        response = await self.inner.handle_async_request(inner)
        content = await response.aread()
        return httpx.Response(
            response.status_code, headers=response.headers, content=content
        )


class Wire(httpx.BaseTransport):
    """A transport between a party and the analyst that a test can observe and change.

    before: sees each request, and may answer in the analyst's place.
    after: may change each answer.
    """

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner = inner
        self.requests: list[httpx.Request] = []
        self.before: Callable[[httpx.Request], httpx.Response | None] = lambda _: None
        self.after: Callable[[httpx.Request, httpx.Response], httpx.Response] = (
            lambda _, answer: answer
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if (answer := self.before(request)) is not None:
            return answer
        return self.after(request, self.inner.handle_request(request))

    def sent(self, ending: str) -> list[bytes]:
        return [r.content for r in self.requests if r.url.path.endswith(ending)]


@dataclass(frozen=True, kw_only=True)
class Api:
    """An analyst in this process, with its parts, a client and what its threads repeat."""

    app: Any
    portal: BlockingPortal
    service: Service
    clock: HandClock
    driver: HandDriver
    client: httpx.Client
    repeated: Mapping[str, Callable[[], object]]

    def key(self, role: Role = Role.COORDINATOR, seconds: int = 366 * 86_400) -> str:
        return self.service.database.transact(create_key, role, "tests", seconds)[1]

    def caller(self, secret: str) -> Caller:
        [found] = self.service.database.query(authenticate, [f"Bearer {secret}"])
        assert isinstance(found, Caller)
        return found

    def send(
        self,
        method: str,
        path: str,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> httpx.Response:
        headers = {**requests.bearer_header(secret), **(headers or {})}
        return self.client.request(method, path, headers=headers, **options)

    def turn(self) -> None:
        """Let the driver look for work once, and run the steps that are due."""
        self.driver.turn()

    def open(self, params: Params, parts: simulation.Split, **more: Any) -> ByHand:
        return ByHand(self, params, parts, **more)

    def connect(self, http: httpx.Client | None = None) -> HttpAnalyst:
        inner = self.client._transport
        http = http or httpx.Client(base_url=self.client.base_url, transport=inner)
        return connect(str(http.base_url), patience=5, http=http)

    def wire(self) -> Wire:
        return Wire(self.client._transport)

    def coordinator(self, home: Path, entropy: bytes | None = None) -> Coordinator:
        how: dict[str, Any] = {"home": home, "entropy": entropy}
        return Coordinator(
            "http://127.0.0.1", self.key(), analyst=self.connect(), **how
        )

    def stored(self) -> tuple[dict[str, list[tuple[Any, ...]]], list[str]]:
        """Return all rows, as the driver reads them, and the paths of all blobs."""
        engine = self.service.database.engine
        with closing(engine.raw_connection()) as connection:
            cursor = connection.cursor()
            rows = {}
            for table in Base.metadata.sorted_tables:
                cursor.execute(_select_rows(table, engine.dialect))
                rows[table.name] = cursor.fetchall()
        places = os.walk(
            self.service.settings.blob_location.folder
        )  # cheaper than rglob
        blobs = (f"{place}/{name}" for place, _, names in places for name in names)
        return rows, sorted(blobs)


StartApi = Callable[..., AbstractContextManager[Api]]
"""Starts an analyst over one folder, with changed settings."""


@cache
def _select_rows(table: sa.Table, dialect: sa.Dialect) -> str:
    """Return the SQL for all rows, without the columns that every request changes."""
    columns = (each for each in table.c if each.name != "last_used_at")
    selected = sa.select(*columns).order_by(*table.primary_key)
    return str(selected.compile(dialect=dialect))


_routes: list[Any] = []
"""The routes of all apps, with pages and without."""


@contextmanager
def in_process(
    folder: Path, database_url: str = "", *, driven: bool = False, **changes: Any
) -> Iterator[Api]:
    """Run the app with its lifespan; ``driven``: rounds are stepped unasked.

    A PostgreSQL database has its tables already, as ``Databases.current`` lends it.
    """
    settings = Settings(
        data_dir=folder,
        database_url=database_url,
        # its clock stands still, and fills no bucket
        **{"requests_per_second": 10**6, "hidden_protocols": "", **changes},
    )
    clock = HandClock()
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        idle = lambda service: nullcontext()  # noqa: ARG005, E731  a stand-in of one line
        patch.setattr(application, "Driver", HandDriver if driven else idle)
        repeated: dict[str, Callable[[], object]] = {}

        def leave_out(name: str, _seconds: float, work: Callable[[], object]) -> Any:
            repeated[name] = work
            return nullcontext()

        patch.setattr(application, "repeat_in_thread", leave_out)
        # else each request looks on the disk for a library that is not there
        patch.setattr("httpx._transports.asgi.is_running_trio", lambda: False)
        patch.setattr(os, "fsync", lambda _: None)  # nobody pulls the plug here
        if settings.database.startswith("sqlite:///"):
            write_current_file(Path(settings.database.removeprefix("sqlite:///")))
        app = application.create_app(settings, clock)
        # what the framework works out for a route at its first request serves every app
        _routes[:] = _routes or app.router.routes
        app.router.routes[:] = _routes
        portal = stack.enter_context(start_blocking_portal())
        lifespan = app.router.lifespan_context(app)
        stack.enter_context(portal.wrap_async_context_manager(lifespan))
        service = app.state.service
        _commit_in_memory(service.database)
        client = httpx.Client(
            base_url="http://127.0.0.1", transport=InProcess(app, portal)
        )
        stack.enter_context(client)
        yield Api(
            app=app,
            portal=portal,
            service=service,
            clock=clock,
            driver=HandDriver(service),
            client=client,
            repeated=repeated,
        )


def _commit_in_memory(database: Database) -> None:
    """Let SQLite wait for no disk: nobody pulls the plug here."""
    if database.engine.dialect.name == "sqlite":

        @sa.event.listens_for(database.engine, "connect")
        def _connect(connection: Any, record: Any) -> None:
            del record
            connection.execute("PRAGMA synchronous=OFF")

        database.engine.dispose()  # the lifespan has connected already


class ByHand:
    """A session in which a test sends each request of coordinator and parties."""

    def __init__(
        self,
        api: Api,
        params: Params,
        parts: simulation.Split,
        expected: Mapping[str, str] | None = None,
        *,
        session: str | None = None,
        named: bool = False,
        **more: Any,
    ) -> None:
        self.api = api
        self.parts = parts
        self.id = session or f"s-{secrets.token_hex(4)}"
        self.path = f"/v1/sessions/{self.id}"
        self.key = api.key()
        self.keys = simulation.derive_entropies(7, self.id, parts.layout.names)
        self.coordinator = Institution.derive(self.keys[simulation.COORDINATOR])
        if named:
            expected = {
                slot: Institution.derive(self.keys[slot]).key
                for slot in parts.layout.names
            }
        self.terms = {
            "protocol": {
                "name": find_protocol_name(params),
                "params": params.model_dump(mode="json"),
            },
            "layout": parts.layout.model_dump(mode="json"),
            "identities": {
                "coordinator": self.coordinator.key,
                "analyst": api.service.institution.key,
                "slots": dict(expected or {}),
            },
            **more,
        }
        self.secret = roster_entries.derive_session_secret(
            self.keys[simulation.COORDINATOR], self.id
        )
        self.tokens: dict[str, str] = {}
        self.joins: Counter[str] = Counter()
        self.journals: dict[str, engine.Journal] = {}
        self.memories: dict[str, dict[int, Memory]] = {}
        response = api.send("PUT", self.path, self.key, json=self.terms)
        assert response.status_code == 201, response.text
        self.codes = self.invite()

    def invite(self, *slots: str) -> dict[str, str]:
        response = self.api.send(
            "POST",
            f"{self.path}/invitations",
            self.key,
            json={"slots": list(slots) or None},
        )
        assert response.status_code == 201, response.text
        codes: dict[str, str] = response.json()["codes"]
        return codes

    @property
    def drawn(self) -> bytes:
        return draw_up_terms(self.id, SessionWrite.model_validate(self.terms))

    def agreement(self) -> bytes:
        roster = {slot: self.member(slot) for slot in self.parts.layout.names}
        return roster_entries.build_agreement(self.drawn, roster)

    def invitation(self, slot: str, terms: bytes | None = None, **more: Any) -> str:
        """Return a slot's invitation, by default for the session's terms."""
        signed = digest(terms or self.drawn)
        named = {
            "url": "http://127.0.0.1",
            "session": self.id,
            "slot": slot,
            "code": self.codes[slot],
            "secret": self.secret,
            "terms": signed,
            "coordinator": self.coordinator.key,
            "signature": roster_entries.sign_terms(self.coordinator, signed),
        }
        return str(Invitation(**{**named, **more}))

    def accept(
        self,
        slot: str,
        home: Path,
        wire: Wire | None = None,
        patience: float = 5,
        **more: Any,
    ) -> Party:
        """Let the SDK accept the invitation of a slot."""
        url = str(self.api.client.base_url)
        http = httpx.Client(base_url=url, transport=wire or self.api.client._transport)
        named = {
            "invitation": self.invitation(slot),
            "policy": ACCEPTING,
            "analyst": connect(url, patience=patience, http=http),
        }
        return Party.join(home=home, **{**named, **more})

    def member(
        self,
        slot: str,
        entropy: bytes | None = None,
        shape: tuple[int, int] | None = None,
        institution: Institution | None = None,
    ) -> Member:
        """Return a party's signed line of the roster."""
        key, data = entropy or self.keys[slot], self.parts.data[slot]
        n_rows, n_columns = shape or (data.n_rows, len(data.columns))
        return roster_entries.create_roster_line(
            self.secret,
            self.drawn,
            slot,
            key,
            institution or Institution.derive(key),
            n_rows=n_rows,
            n_columns=n_columns,
        )

    def joining(
        self, slot: str, member: Member | None = None, entropy: bytes | None = None
    ) -> dict[str, Any]:
        """Return the body of a join, signed with the key that follows from the entropy."""
        code = self.codes[slot]
        key = entropy or self.keys[slot]
        line = member or self.member(slot, entropy)
        return {
            "code": code,
            "member": line.model_dump(mode="json"),
            "proof": roster_entries.sign_join(
                key, self.id, line, code, self.joins[slot]
            ),
        }

    def try_join(
        self, slot: str, member: Member | None = None, entropy: bytes | None = None
    ) -> httpx.Response:
        body = self.joining(slot, member, entropy)
        response = self.api.send("POST", "/v1/join", json=body)
        self.joins[slot] += response.is_success
        return response

    def join(self, *slots: str, turn: bool = True) -> ByHand:
        """Join slots (all by default) and let the first round open if all are in."""
        for slot in slots or self.parts.layout.names:
            response = self.try_join(slot)
            assert response.status_code == 200, response.text
            self.tokens[slot] = response.json()["token"]
        if turn:
            self.api.turn()
        return self

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.send("GET", self.path, self.key).json()
        return found

    @property
    def audit_lines(self) -> list[str]:
        answer = self.api.send("GET", f"{self.path}/audit", self.key)
        lines: list[str] = answer.json()["lines"]
        return lines

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The entries of the audit, whose chain holds."""
        return list(hash_chain.read(self.audit_lines))

    def cancel(self) -> httpx.Response:
        return self.api.send("POST", f"{self.path}/cancel", self.key)

    def task(self, slot: str) -> httpx.Response:
        return self.api.send("GET", f"{self.path}/task", self.tokens[slot])

    def reply(self, slot: str) -> bytes:
        """Compute the contribution to the open task, as the SDK does."""
        task = self.task(slot).content
        agreement = self.api.send("GET", f"{self.path}/agreement", self.key).content
        party = engine.PartyEngine(
            agreement=agreement, slot=slot, entropy=self.keys[slot]
        )
        after = self.memories.setdefault(slot, {0: Memory()})
        round_ = packets.parse(task).address.round
        memory = after[max(number for number in after if number < round_)]
        journal = self.journals.get(slot, engine.Journal())  # attempts do not undo it
        answer = party.reply(journal, memory, task, self.parts.data[slot])
        self.journals[slot], after[round_] = answer.journal, answer.memory
        return answer.contribution

    def place(self, content: bytes) -> str:
        """The path of the round and attempt that a contribution names."""
        address = packets.parse(content).address
        return (
            f"{self.path}/rounds/{address.round}/attempts/{address.attempt}"
            "/contribution"
        )

    def put(self, slot: str, content: bytes, path: str | None = None) -> httpx.Response:
        return self.api.send(
            "PUT",
            path or self.place(content),
            self.tokens[slot],
            requests.contribution_headers(content),
            content=content,
        )

    def answer(self, *slots: str, turn: bool = True) -> None:
        """Answer the open round for slots (all by default); the driver looks once."""
        for slot in slots or self.parts.layout.names:
            response = self.put(slot, self.reply(slot))
            assert response.status_code == 201, response.text
        if turn:
            self.api.turn()

    def until(self, stage: str) -> ByHand:
        """Answer every round before a stage."""
        while self.status["stage"] != stage:
            self.answer()
        return self

    def finish(self) -> ByHand:
        """Answer every round to the end."""
        while self.status["state"] == "collecting":
            self.answer()
        return self
