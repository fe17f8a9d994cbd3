"""The administrative log as it leaves the analyst: line by line, and none left out."""

from __future__ import annotations

import json
import re
import socket
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from analyst_service.cli import log_export
from analyst_service.storage.models import AdministrationLine
from analyst_service.transactions.administrative_log import (
    SERVICE,
    Act,
    AdministrationLog,
)
from clustering_protocols.records import hash_chain
from party_sdk.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.in_process import Api

RFC5424 = re.compile(rb"<(\d+)>1 (\S+) (\S+) coterie - (\S+) - (\{.*\})", re.DOTALL)


class Stopped(Exception):
    """A person who presses Ctrl-C once nothing more comes."""


def write(api: Api, *acts: Act, **fields: str) -> None:
    with api.service.database.write() as transaction:
        log = AdministrationLog(transaction)
        for act in acts:
            log.append(act, SERVICE, api.clock.now(), **fields)


@pytest.fixture
def follow(
    each_api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Follow until nothing comes; ``meanwhile`` happens at the first rest."""
    url = each_api.service.database.engine.url.render_as_string(hide_password=False)
    here = {"COTERIE_DATABASE_URL": url, "COTERIE_DATA_DIR": str(tmp_path / "data")}

    def run(*words: str, meanwhile: Callable[[], None] | None = None) -> Result:
        to_do = [meanwhile] if meanwhile else []

        def rest(_: float) -> None:
            if not to_do:
                raise Stopped
            to_do.pop()()

        monkeypatch.setattr(log_export, "sleep", rest)
        return CliRunner().invoke(main, ["audit", "--follow", *words], env=here)

    return run


@contextmanager
def daemon(path: Path) -> Iterator[Callable[[], list[bytes]]]:
    """The machine's own daemon; called, it returns what came."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as own:
        own.bind(str(path))
        own.settimeout(0)

        def came() -> list[bytes]:
            found = []
            while True:
                try:
                    found.append(own.recv(65_536))
                except BlockingIOError:
                    return found

        yield came


def numbers(messages: list[bytes]) -> list[int]:
    """The numbers of the lines in messages of syslog."""
    found = []
    for message in messages:
        parsed = RFC5424.fullmatch(message.removesuffix(b"\n"))
        assert parsed is not None, message
        found.append(json.loads(parsed[5])["number"])
    return found


def test_what_comes_is_printed_and_can_be_checked(
    each_api: Api, follow: Callable[..., Result]
) -> None:
    write(each_api, Act.KEY_MADE, Act.BACKUP_MADE)
    found = follow("--json", meanwhile=lambda: write(each_api, Act.KEY_REVOKED))
    assert isinstance(found.exception, Stopped)
    entries = list(hash_chain.read(found.stdout.splitlines()))
    assert [e["event"] for e in entries] == ["key-made", "backup-made", "key-revoked"]
    assert "key-revoked" in follow().stdout.splitlines()[-1]


def test_syslog_gets_each_line_once_over_several_starts(
    each_api: Api, follow: Callable[..., Result], tmp_path: Path
) -> None:
    words = ("--syslog", str(tmp_path / "log"), "--state", str(tmp_path / "state"))
    write(each_api, Act.KEY_MADE)
    with daemon(tmp_path / "log") as came:
        follow(*words, meanwhile=lambda: write(each_api, Act.SIGN_IN_REFUSED))
        first = came()
        assert numbers(first) == [1, 2]
        severities = [int(m.partition(b">")[0][1:]) % 8 for m in first]
        assert severities == [6, 4]  # info, warning
    (tmp_path / "log").unlink()
    write(each_api, Act.KEY_REVOKED)
    gone = follow(*words)
    assert gone.exit_code == 1
    assert "Traceback" not in gone.output
    with daemon(tmp_path / "log") as came:
        follow(*words)
        assert numbers(came()) == [3]


def test_a_server_reads_messages_by_their_ends(
    each_api: Api, follow: Callable[..., Result]
) -> None:
    write(each_api, Act.KEY_MADE, Act.KEY_ROTATED, made_for="a\nb <1>1 – ü")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        follow("--syslog", f"127.0.0.1:{port}")
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as lines:
            assert numbers([lines.readline(), lines.readline()]) == [1, 2]


@pytest.mark.threat(173)
def test_a_log_that_lost_its_end_is_found_out(
    each_api: Api, follow: Callable[..., Result], tmp_path: Path
) -> None:
    state = str(tmp_path / "state")
    write(each_api, Act.KEY_MADE, Act.KEY_REVOKED)
    follow("--state", state)
    with each_api.service.database.write() as transaction:
        transaction.execute(
            sa.delete(AdministrationLine).where(AdministrationLine.number == 2)
        )
    assert follow("--state", state).exit_code == 3


@pytest.mark.threat(173)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_log_that_was_written_anew_is_not_handed_on(
    each_api: Api, follow: Callable[..., Result], tmp_path: Path, number: int
) -> None:
    """Also where the whole chain holds again: it does not follow what was handed on."""
    state = str(tmp_path / "state")
    write(each_api, Act.KEY_MADE, Act.KEY_REVOKED)
    follow("--state", state)
    with each_api.service.database.write() as transaction:
        transaction.execute(sa.delete(AdministrationLine))
        log = AdministrationLog(transaction)
        for each in range(1, 5):
            act = Act.RESTORED if each == number else Act.KEY_MADE
            log.append(act, SERVICE, each_api.clock.now())
    found = follow("--state", state)
    assert found.exit_code == 3
    assert found.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--syslog", "host"),
        ("--syslog", "udp://host:514"),
        ("--syslog", "me@host:514"),
        ("--state", "damaged"),
    ],
)
def test_what_is_no_address_or_no_position_is_said(
    follow: Callable[..., Result], tmp_path: Path, words: tuple[str, str]
) -> None:
    (tmp_path / "damaged").write_text('{"number": 3}x')
    option, value = words
    found = follow(option, value.replace("damaged", str(tmp_path / "damaged")))
    assert found.exit_code not in {0, None}
    assert not isinstance(found.exception, (Stopped, TypeError, ValueError))


@pytest.mark.parametrize("option", ["--syslog", "--state"])
def test_they_belong_to_following(tmp_path: Path, option: str) -> None:
    env: dict[str, Any] = {"COTERIE_DATA_DIR": str(tmp_path)}
    assert CliRunner().invoke(main, ["audit", option, "x"], env=env).exit_code == 2
