"""Sending a large contribution in pieces: what a cut costs, and who takes none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest
from support.analyst_process import wait_for
from support.in_process import in_process

from analyst_service.errors import problem_response
from analyst_service.retention.worker import Sweeper
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import StorageFull, Unavailable
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from coterie import Party, Policy
from party_sdk.analyst_client import http_analyst, resumable_uploads
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.analyst_client.transport import Listeners
from party_sdk.cli.terminal import patience

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(40, 3)), Layout.lattice(1), seed=1
)
[A] = PARTS.layout.names
ACCEPTING = Policy(
    accepted_risks=frozenset({"dummy.row-count-is-known", "house.open-slot"}),
    least_known=0,
)
PIECE = 64


class Killed(BaseException):
    """The end of a process: nothing in it continues."""


def delivered(_: httpx.Request) -> bool:
    """Let a request pass."""
    return True


@dataclass
class Line(httpx.BaseTransport):
    """A line that is cut where a test says; it counts what was sent over it."""

    inner: httpx.BaseTransport
    cut: Callable[[httpx.Request], bool] = delivered
    lost: Callable[[httpx.Request], bool] = delivered
    methods: list[str] = field(default_factory=list)
    sent: int = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.methods.append(f"{request.method} {request.url.path.rpartition('/')[2]}")
        if request.method == "PATCH":
            self.sent += len(request.read())
        if not self.cut(request):
            raise httpx.WriteError("cut", request=request)
        answer = self.inner.handle_request(request)
        if not self.lost(request):
            raise httpx.ReadError("lost", request=request)
        return answer


def every(nth: int) -> Callable[[httpx.Request], bool]:
    """Cut every nth piece."""
    seen = 0

    def cut(request: httpx.Request) -> bool:
        nonlocal seen
        seen += request.method == "PATCH"
        return request.method != "PATCH" or seen % nth != 0

    return cut


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("api")
    with in_process(folder, driven=True, upload_seconds=60) as running:
        running.driver.__enter__()
        try:
            yield running
        finally:
            running.driver.__exit__(None, None, None)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_analyst, "IN_PIECES_FROM", 1)
    monkeypatch.setattr(resumable_uploads, "_LEAST_PIECE", PIECE)
    monkeypatch.setattr("party_sdk.analyst_client.retries._BASE_SECONDS", 0.001)


@dataclass
class Sender:
    """A party that sends one contribution, with the SDK's client."""

    session: ByHand
    content: bytes
    line: Line
    resumed: list[float] = field(default_factory=list)

    def contribute(self, patience: float = 5) -> str:
        http = httpx.Client(base_url="http://127.0.0.1", transport=self.line)
        analyst = connect(
            "http://127.0.0.1",
            patience=patience,
            http=http,
            listeners=Listeners(on_resumed=self.resumed.append),
        )
        own = analyst.as_party(self.session.tokens[A])
        receipt, _ = own.contribute(self.session.id, 1, 1, self.content)
        return receipt.digest

    @property
    def digest(self) -> str:
        return sha256(self.content).hexdigest()


@pytest.fixture
def sender(api: Api) -> Sender:
    session = api.open(Dummy(), PARTS).join(turn=False)
    wait_for(lambda: session.status["state"] == "collecting")
    return Sender(session, session.reply(A), Line(api.client._transport))


def test_an_uncut_contribution_goes_over_the_line_once(sender: Sender) -> None:
    assert sender.contribute() == sender.digest
    assert sender.line.sent == len(sender.content)
    assert sender.line.methods[0] == "PUT upload"
    assert set(sender.line.methods[1:]) == {"PATCH upload"}
    assert sender.resumed == []


def test_each_cut_costs_one_piece_and_is_said(sender: Sender) -> None:
    sender.line.cut = every(3)
    assert sender.contribute() == sender.digest
    cuts = sender.line.methods.count("PUT upload") - 1
    assert cuts >= 2
    assert sender.line.sent <= len(sender.content) + cuts * PIECE
    assert sender.resumed
    assert all(0 < share < 1 for share in sender.resumed)
    assert sender.resumed == sorted(sender.resumed)


def test_received_pieces_are_not_sent_again_after_a_lost_reply(
    sender: Sender,
) -> None:
    sender.line.lost = every(2)
    assert sender.contribute() == sender.digest
    assert sender.line.sent == len(sender.content)


def test_a_killed_party_goes_on_where_it_was(api: Api, tmp_path: Path) -> None:
    """Journal, ledger and result are those of a party that nobody has killed."""
    session = api.open(Dummy(), PARTS)
    line = Line(api.client._transport)
    resumed: list[float] = []

    def run() -> int:
        http = httpx.Client(base_url="http://127.0.0.1", transport=line)
        analyst = connect(
            "http://127.0.0.1",
            patience=5,
            http=http,
            listeners=Listeners(on_resumed=resumed.append),
        )
        with Party.join(
            session.invitation(A),
            policy=ACCEPTING,
            home=tmp_path,
            analyst=analyst,
            entropy=session.keys[A],
        ) as party:
            return len(party.run(PARTS.data[A]).labels)

    left = 3

    def kill(request: httpx.Request) -> bool:
        nonlocal left
        left -= request.method == "PATCH"
        if left < 0:
            raise Killed
        return True

    line.cut = kill
    with pytest.raises(Killed):
        run()
    sent, line.cut = line.sent, delivered
    assert run() == PARTS.data[A].n_rows
    assert resumed
    assert sent == 4 * PIECE  # the last of them did not come through
    assert session.status["state"] == "completed"


def test_an_analyst_of_an_earlier_release_gets_one_body(sender: Sender) -> None:
    """It knows no address of that name."""
    inner = sender.line.inner

    class Earlier(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/upload"):
                told = problem_response(Problem.NOT_FOUND, "This is not served.")
                return httpx.Response(
                    404, headers=dict(told.headers), content=bytes(told.body)
                )
            return inner.handle_request(request)

    sender.line.inner = Earlier()
    assert sender.contribute() == sender.digest
    assert sender.line.methods == ["PUT upload", "PUT contribution"]


def test_who_was_swept_meanwhile_begins_again(api: Api, sender: Sender) -> None:
    left = 2

    def cut(request: httpx.Request) -> bool:
        nonlocal left
        left -= request.method == "PATCH"
        if left == 0:
            api.clock.forward(api.service.settings.upload_seconds + 1)
            Sweeper(api.service).turn()
        return True

    sender.line.cut = cut
    assert sender.contribute() == sender.digest
    assert sender.line.sent == len(sender.content) + 2 * PIECE


@pytest.mark.parametrize(
    ("problem", "said"),
    [(Problem.STORAGE_FULL, StorageFull), (Problem.INTERNAL, Unavailable)],
)
def test_a_line_that_no_piece_comes_through_ends_the_patience(
    sender: Sender, problem: Problem, said: type[Exception]
) -> None:
    inner = sender.line.inner

    class Broken(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.method != "PATCH":
                return inner.handle_request(request)
            if problem is Problem.INTERNAL:
                raise httpx.WriteError("cut", request=request)
            told = problem_response(problem, "It is full.")
            return httpx.Response(
                problem.status, headers=dict(told.headers), content=bytes(told.body)
            )

    sender.line.inner = Broken()
    with pytest.raises(said):
        sender.contribute(patience=0.05)


def test_a_piece_is_no_larger_than_the_analyst_takes(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable_uploads, "_LEAST_PIECE", 1 << 20)
    inner = sender.line.inner

    class Narrow(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = inner.handle_request(request)
            if "upload-limit" in answer.headers:
                answer.headers["upload-limit"] = "max-size=9, max-append-size=50"
            return answer

    sender.line.inner = Narrow()
    assert sender.contribute() == sender.digest
    patches = sender.line.methods.count("PATCH upload")
    assert patches == -(-len(sender.content) // 50) + 1


def test_the_operator_reads_where_it_goes_on(
    capsys: pytest.CaptureFixture[str], sender: Sender
) -> None:
    sender.line.cut = every(3)
    sender.contribute()
    patience.show_resumed(sender.resumed[0])
    assert f"resumed at {sender.resumed[0]:.0%}" in capsys.readouterr().err
