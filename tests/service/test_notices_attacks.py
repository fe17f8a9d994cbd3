"""What an address that somebody leaves may not make the analyst do."""

from __future__ import annotations

import json
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction
from support.analyst_process import Analyst, wait_for
from support.databases import BOTH_DATABASES, Databases, on_both_databases
from support.in_process import Api, ByHand, in_process
from support.tls import certificate

from analyst_service.clock import SystemClock
from analyst_service.configuration.notice_settings import is_mail_address
from analyst_service.configuration.settings import Settings
from analyst_service.notices import addresses, webhooks
from analyst_service.notices.mail import letter
from analyst_service.notices.messages import Notification
from analyst_service.notices.sender import Sender
from analyst_service.notices.service import NoticeService
from analyst_service.storage.database import Database
from analyst_service.storage.models import Notice
from analyst_service.transactions.outbox import NoticeEvent
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.notices import Way
from tests.service.receivers import Hook, hook

StartApi = Callable[..., AbstractContextManager[Api]]

PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(40, 3)), Layout.lattice(2), seed=1
)
A, B = PARTS.layout.names
OPEN = {"notices_webhooks": True, "notices_http": True}
INSIDE = {**OPEN, "notices_internal": "127.0.0.0/8"}


@pytest.fixture
def receiver() -> Iterator[Hook]:
    with hook() as running:
        yield running


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ByHand]:
    """A session that takes addresses of both ways, and keeps none that it refuses."""
    mail = {"smtp_host": "127.0.0.1", "smtp_from": "a@b.example"}
    folder = tmp_path_factory.mktemp("refusing")
    with in_process(folder, notices_webhooks=True, **mail) as api:
        session = api.open(Dummy(), PARTS)
        assert post(session, "https://hooks.example/") == 201
        assert post(session, "a@b.example", "mail") == 201
        yield session


def post(session: ByHand, address: str, way: str = "webhook") -> int:
    path = f"{session.path}/receivers"
    body = {"way": way, "address": address}
    return session.api.send("POST", path, session.key, json=body).status_code


def failure(session: ByHand) -> str | None:
    """What the coordinator reads of its only receiver, once it has been told."""
    while Sender(session.api.service).turn():
        pass
    path = f"{session.path}/receivers"
    [line] = session.api.send("GET", path, session.key).json()["receivers"]
    found: str | None = line["failure"]
    return found


# Where it may go

INTERNAL = (
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.0.8",
    "198.18.0.1",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "fe80::1",
    "fc00::1",
    "fec0::1",
    "ff02::1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:0a00:0001::1",
    "2002:7f00:0001::1",
    "2001:db8::1",
    "3fff::1",
    "192.88.99.1",
)
PUBLIC = ("93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101")


@pytest.mark.threat(120)
@pytest.mark.parametrize("number", INTERNAL)
def test_an_address_inside_is_none_to_call(number: str) -> None:
    assert not addresses.is_allowed(ip_address(number), [])


@pytest.mark.parametrize("number", PUBLIC)
def test_an_address_outside_is(number: str) -> None:
    assert addresses.is_allowed(ip_address(number), [])


def test_the_administrator_names_networks_inside() -> None:
    inside = [ip_network("10.2.0.0/16")]
    assert addresses.is_allowed(ip_address("10.2.3.4"), inside)
    assert not addresses.is_allowed(ip_address("10.3.3.4"), inside)


@pytest.mark.threat(120)
@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:169.254.169.254]/latest/meta-data",
        "https://user:secret@hooks.example/",
        "https://hooks.example/#x",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "gopher://hooks.example/_HELO",
        "//hooks.example/",
        "https:///nowhere",
        "https://hooks.example/\r\nX: y",
        "https://hooks.example:99999/",
        "not an address",
    ],
)
def test_what_may_not_be_called_is_refused_when_it_is_left(
    refusing: ByHand, address: str
) -> None:
    assert post(refusing, address) == 422


@pytest.mark.parametrize("address", ["http://hooks.example/", "https://hooks.example/"])
def test_without_tls_goes_what_the_administrator_lets(
    start_api: StartApi, address: str
) -> None:
    with start_api(notices_webhooks=True) as api:
        expected = 201 if address.startswith("https") else 422
        assert post(api.open(Dummy(), PARTS), address) == expected


@pytest.mark.threat(120)
@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1", "127.1"])
def test_internal_names_and_addresses_are_not_called(
    start_api: StartApi, receiver: Hook, host: str
) -> None:
    with start_api(**OPEN) as api:
        session = api.open(Dummy(), PARTS)
        assert post(session, f"http://{host}:{receiver.port}/") == 201
        assert failure(session) == "internal-address"
    assert receiver.got == []


Answers = list[list[str]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What a name stands for, each time that it is asked for; the last stays."""
    answers: Answers = []
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if host not in {"hooks.example", b"hooks.example"}:
            return real(host, port, *rest, **more)
        numbers = answers.pop(0) if len(answers) > 1 else answers[0]
        family = {False: socket.AF_INET, True: socket.AF_INET6}
        kind = socket.SOCK_STREAM
        return [(family[":" in each], kind, 6, "", (each, port)) for each in numbers]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return answers


@pytest.mark.threat(120)
@pytest.mark.parametrize(
    "numbers",
    [["10.0.0.5"], ["93.184.216.34", "127.0.0.1"], ["::1"], ["169.254.169.254"]],
    ids=str,
)
def test_a_name_that_stands_for_an_address_inside_is_not_called(
    start_api: StartApi, names: Answers, receiver: Hook, numbers: list[str]
) -> None:
    names.append(numbers)
    with start_api(**OPEN) as api:
        session = api.open(Dummy(), PARTS)
        assert post(session, f"http://hooks.example:{receiver.port}/") == 201
        assert failure(session) == "internal-address"
    assert receiver.got == []


@pytest.mark.threat(120)
def test_a_notice_goes_to_the_address_that_was_checked(
    start_api: StartApi, names: Answers, receiver: Hook
) -> None:
    """Looked up once: a second answer, had it been asked for, would lead elsewhere."""
    names += [["127.0.0.1"], ["10.0.0.5"]]
    with start_api(**INSIDE) as api:
        session = api.open(Dummy(), PARTS)
        post(session, f"http://hooks.example:{receiver.port}/x?y=z")
        assert failure(session) is None
    assert len(names) == 1, "asked once"
    [(headers, _)] = receiver.got
    assert headers["host"] == f"hooks.example:{receiver.port}"


@pytest.mark.threat(120)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(
    start_api: StartApi, receiver: Hook, status: int
) -> None:
    with hook(status=status, headers={"Location": receiver.url}) as first:
        with start_api(**INSIDE) as api:
            session = api.open(Dummy(), PARTS)
            post(session, first.url)
            assert failure(session) == "redirected"
        assert len(first.got) == 1
    assert receiver.got == []


@pytest.mark.threat(120)
def test_no_proxy_of_the_environment_is_asked(
    start_api: StartApi, receiver: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hook() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        with start_api(**INSIDE) as api:
            session = api.open(Dummy(), PARTS)
            post(session, receiver.url)
            assert failure(session) is None
        assert proxy.got == []
    assert len(receiver.got) == 1


@pytest.mark.threat(121)
def test_a_certificate_of_another_name_or_authority_gets_nothing(
    start_api: StartApi, tmp_path: Path, names: Answers
) -> None:
    certificate(tmp_path)
    names.append(["127.0.0.1"])
    trusting = {**INSIDE, "notices_ca_file": tmp_path / "tls.pem"}
    with hook(tmp_path) as receiver:
        for settings, host, expected in (
            (trusting, "127.0.0.1", None),
            (trusting, "hooks.example", "certificate"),
            (INSIDE, "127.0.0.1", "certificate"),
        ):
            with start_api(**settings) as api:
                session = api.open(Dummy(), PARTS)
                post(session, f"https://{host}:{receiver.port}/")
                assert failure(session) == expected
        assert len(receiver.got) == 1


# How long it may take


@pytest.mark.threat(122)
@pytest.mark.parametrize("how", ["hangs", "drips"])
def test_a_receiver_that_never_ends_its_answer_holds_up_nobody(
    start_api: StartApi, receiver: Hook, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(webhooks, "SECONDS", 0.3)
    with hook(**{how: True}) as slow, start_api(**INSIDE) as api:
        session = api.open(Dummy(), PARTS)
        post(session, slow.url)
        other = api.open(Dummy(), PARTS)
        post(other, receiver.url)
        assert failure(other) is None
        assert failure(session) == "unreachable"
        assert len(slow.got) == 1


@pytest.mark.threat(122)
def test_nobody_at_the_address_is_no_error_of_ours(start_api: StartApi) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with start_api(**INSIDE) as api:
        session = api.open(Dummy(), PARTS)
        post(session, f"http://127.0.0.1:{port}/")
        assert failure(session) == "unreachable"


# Mail


@pytest.mark.threat(123)
@pytest.mark.parametrize(
    "address",
    [
        "a@b.example\r\nBcc: c@d.example",
        "a@b.example\n",
        "a@b.example, c@d.example",
        "a@b.example>",
        "<a@b.example>",
        '"a b"@c.example',
        "@c.example:a@b.example",
        "a%b@c@d.example",
        "-oQ/tmp@b.example",
        "a@b",
        "a@[127.0.0.1]",
        "ä@b.example",
        "a@b.example\x00",
        "Somebody <a@b.example>",
        "a" * 65 + "@b.example",
    ],
)
def test_an_address_that_is_more_than_one_is_refused(
    refusing: ByHand, address: str
) -> None:
    assert not is_mail_address(address)
    assert post(refusing, address, "mail") in {400, 422}


@pytest.mark.threat(123)
def test_a_line_break_never_gets_into_a_header(api: Api) -> None:
    told = Notification(
        notice_id="0" * 32,
        receiver_id="1" * 32,
        address="a@b.example",
        way=Way.MAIL,
        event=NoticeEvent.TURN,
        session="s\r\nBcc: c@d.example",
        slot=A,
        state="collecting",
        round=1,
        happened_at=api.clock.now(),
        since=api.clock.now(),
        deadline=None,
        reason=None,
        awaited=None,
        detail=None,
    )
    with pytest.raises(ValueError, match="linefeed"):
        letter(told, "d@e.example", api.clock.now())


def test_a_mail_server_needs_an_address_of_its_own() -> None:
    with pytest.raises(ValueError, match="COTERIE_SMTP_FROM"):
        Settings(smtp_host="mail.example")


# What is told


@pytest.mark.threat(124)
def test_what_is_told_holds_no_secret_title_or_other_institution(
    start_api: StartApi, receiver: Hook
) -> None:
    title = f"Liver-{secrets.token_hex(4)}"
    with start_api(**INSIDE) as api:
        session = api.open(Dummy(), PARTS, about={"title": title}).join()
        body = {"way": "webhook", "address": receiver.url}
        path = f"{session.path}/receivers"
        secret = session.tokens[A]
        left = api.send("POST", path, secret, json=body).json()
        for seconds in (0, 60, 86_400 / 2, 86_400):
            api.clock.forward(seconds)
            api.turn()
            while Sender(api.service).turn():
                pass
    said = b"".join(json.dumps(h).encode() + b for h, b in receiver.got).decode()
    assert said.count("session.") == 4
    for hidden in (title, B, left["secret"], secret, *session.codes.values()):
        assert hidden not in said


# Processes that are killed


def environment() -> dict[str, str]:
    return {
        "COTERIE_NOTICES_WEBHOOKS": "1",
        "COTERIE_NOTICES_HTTP": "1",
        "COTERIE_NOTICES_INTERNAL": "127.0.0.0/8",
    }


def let_all_be_due(analyst: Analyst) -> None:
    """Write down that the time to try again has come, instead of waiting for it."""
    url = analyst.environment["COTERIE_DATABASE_URL"]
    settings = Settings(data_dir=analyst.data_dir, database_url=url)
    with closing(Database(settings.database)) as database:
        now = SystemClock().now()
        with database.write() as transaction:
            transaction.execute(sa.update(Notice).values(due_at=now))


@pytest.mark.threat(125)
@on_both_databases
def test_a_killed_analyst_loses_no_notice_and_two_send_once(
    database_kind: str, databases: Any, tmp_path: Path, home: Path
) -> None:
    with (
        hook() as receiver,
        databases.current(database_kind, tmp_path) as url,
        Analyst(tmp_path / "data", url, environment()) as first,
        first.coordinator(home) as coordinator,
    ):
        key = first.key
        session = coordinator.create_session(
            "notices", Dummy(), Layout.lattice(2), session_id="s-notices"
        )
        session.receivers.add(receiver.url)
        wait_for(lambda: len(receiver.got) == 1)
        receiver.status = 503
        session.cancel()
        wait_for(lambda: session.receivers.list().receivers[0].retrying == 1)
        first.kill(signal.SIGKILL)
        receiver.status = 204
        let_all_be_due(first)
        first.start()
        with Analyst(tmp_path / "data", url, environment()) as second:
            wait_for(lambda: len(receiver.got) >= 3)
            assert second.url != first.url
            wait_for(lambda: session.receivers.list().receivers[0].sent == 2)
            assert session.receivers.list().receivers[0].retrying == 0
    kinds = [json.loads(body)["type"] for _, body in receiver.got]
    assert kinds == ["session.added", "session.ended", "session.ended"]
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert ids[1] == ids[2] != ids[0]
    assert key not in str(receiver.got)


@pytest.mark.threat(125)
def test_a_notice_sent_again_after_a_crash_keeps_its_id(
    start_api: StartApi, receiver: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> bool:
        raise SystemExit

    with start_api(**INSIDE) as api:
        session = api.open(Dummy(), PARTS)
        post(session, receiver.url)
        with monkeypatch.context() as patch:
            patch.setattr(NoticeService, "settle", die)
            with pytest.raises(SystemExit):
                Sender(api.service).turn()
        assert failure(session) is None
        assert len(receiver.got) == 1, "the lease holds"
        api.clock.forward(120)
        assert failure(session) is None
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert len(ids) == 2
    assert len(set(ids)) == 1


@pytest.mark.threat(125)
@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_of_many_senders_one_sends_each_notice(
    kind: str, databases: Databases, tmp_path: Path, receiver: Hook
) -> None:
    with (
        databases.current(kind, tmp_path) as url,
        in_process(tmp_path / "api", url, **INSIDE) as api,
    ):
        sessions = [api.open(Dummy(), PARTS) for _ in range(12)]
        for session in sessions:
            post(session, receiver.url)

        def drain(_: int) -> None:
            sender = Sender(api.service)
            while sender.turn():
                pass

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(drain, range(4)))
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert len(ids) == len(set(ids)) == len(sessions)


def test_simultaneous_senders_share_no_notice_or_receiver(
    databases: Databases, tmp_path: Path
) -> None:
    """A query that began before another sender's lease ends after it, at times."""
    n_rounds, n_receivers, n_each = 12, 4, 3
    with (
        databases.current("postgresql", tmp_path) as url,
        in_process(tmp_path / "api", url, **INSIDE) as api,
        ThreadPoolExecutor(8) as pool,
    ):
        session = api.open(Dummy(), PARTS)
        for number in range(n_receivers):
            post(session, f"http://127.0.0.1:9/{number}")
        database = api.service.database
        database.transact(lambda within: copied(within, n_each))

        def take(_: int) -> list[tuple[str, str]]:
            found = []
            while taken := database.transact(
                lambda within: NoticeService(within, api.service).take()
            ):
                found.append((taken[0].id, taken[1].receiver_id))
            return found

        for _ in range(n_rounds):
            taken = [each for found in pool.map(take, range(8)) for each in found]
            assert len({notice for notice, _ in taken}) == len(taken)
            assert len({receiver for _, receiver in taken}) == len(taken) == n_receivers
            database.transact(given_back)


def copied(within: Transaction, times: int) -> None:
    """Give every receiver more notices than the one that it has."""
    for notice in within.scalars(sa.select(Notice)).all():
        values = {c.key: getattr(notice, c.key) for c in sa.inspect(Notice).columns}
        for _ in range(times - 1):
            within.add(Notice(**{**values, "id": secrets.token_hex(16)}))


def given_back(within: Transaction) -> None:
    within.execute(sa.update(Notice).values(lease_until=None, attempts=0))
