"""What stands between a machine and an analyst, and what to do about it."""

import shutil
from collections import namedtuple
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from support.analyst_process import Analyst, free_port
from support.terminal import Terminal, opened

from party_sdk.analyst_client import diagnosis
from party_sdk.analyst_client.diagnosis import (
    CheckResult,
    _identify_peer,
    check_analyst,
    check_home,
    find_network_file_system,
)
from party_sdk.home.identities import OwnIdentity
from party_sdk.home.store import FILE, store_of


def wrong(found: Iterable[CheckResult]) -> dict[str, str]:
    """The checks that found something, each with what to do."""
    return {each.check: each.remedy for each in found if not each.is_ok}


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_all_is_well_beside_a_running_analyst(online: Terminal) -> None:
    _, invitation = opened(online)
    shown = online("doctor", f"@{online.file('invitation', invitation)}").stdout
    for check in ("versions", "home", "disk", "address", "connection", "clock"):
        assert f"good   {check}: " in shown
    assert "good   analyst: " in shown
    assert "WRONG" not in shown
    assert invitation not in shown
    found = online.json("doctor", online.environment["COTERIE_URL"])
    assert all(each["good"] for each in found)


def test_something_wrong_is_exit_code_1_with_a_remedy(terminal: Terminal) -> None:
    found = terminal.json("doctor", f"http://127.0.0.1:{free_port()}", expect=1)
    [bad] = [each for each in found if not each["good"]]
    assert bad["check"] == "connection"
    assert "whether the analyst runs" in bad["remedy"]


def test_a_name_that_does_not_resolve_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr("socket.getaddrinfo", fails)
    assert list(wrong(check_analyst("https://analyst.invalid"))) == ["address"]


@pytest.mark.parametrize(("year", "told"), [(2000, "behind"), (2100, "ahead of")])
def test_a_clock_that_differs_is_told(analyst: Analyst, year: int, told: str) -> None:
    here = datetime(year, 1, 1, tzinfo=UTC)
    found = check_analyst(analyst.url, now=lambda: here)
    [said] = [each.text for each in found if not each.is_ok]
    assert f"seconds {told} the analyst's" in said


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (None, "does not say"),
        ("soon", "does not say"),
        ("Wed, 01 Jan 2025 00:00:00 -0000", "agree within a minute"),
    ],
)
def test_an_unusual_date_is_no_fault(header: str | None, told: str) -> None:
    result = diagnosis._compare_clocks(header, datetime(2025, 1, 1, tzinfo=UTC))
    assert result.is_ok
    assert told in result.text


def test_a_proxy_in_use_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    monkeypatch.setenv("https_proxy", f"http://user:secret@127.0.0.1:{port}")
    found = list(check_analyst("https://analyst.example"))
    assert f"127.0.0.1:{port}" in found[0].text
    assert "secret" not in "".join(each.text + each.remedy for each in found)
    assert not found[-1].is_ok, "nobody is there"


@pytest.mark.parametrize("status", [200, 404, 502])
@pytest.mark.parametrize("content", ["<html>Welcome</html>", '{"keyboard": "none"}'])
def test_a_server_that_is_not_an_analyst_is_told(status: int, content: str) -> None:
    page = httpx.Response(status, html=content)
    assert "not an analyst" in _identify_peer("https://analyst.example", page).text


def test_a_home_that_others_may_read_is_told_with_the_command(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    assert wrong(check_home(home)) == {"home": f"chmod 700 {home}"}
    home.chmod(0o700)
    assert not wrong(check_home(home))


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    OwnIdentity(home).create("North")
    assert not wrong(check_home(home))
    store_of(home).close()
    with (home / FILE).open("r+b") as file:
        file.seek(4096)
        file.write(bytes(8192))
    assert set(wrong(check_home(home))) == {"database"}


@pytest.mark.parametrize(
    ("kind", "is_network"),
    [("nfs4", True), ("cifs", True), ("fuse.sshfs", True), ("ext4", False)],
)
def test_a_home_on_a_network_file_system_is_told(
    tmp_path: Path, kind: str, *, is_network: bool
) -> None:
    """The innermost mount counts."""
    home, mounts = tmp_path / "a földer" / "home", tmp_path / "mounts"
    home.mkdir(parents=True)
    escaped = str(home.parent).replace(" ", "\\040")
    mounts.write_text(
        "1 0 8:1 / / rw shared:1 - nfs root rw\n"
        f"2 1 0:9 / {tmp_path} rw - tmpfs none rw\n"
        f"3 2 0:9 / {escaped} rw - {kind} server:/export rw\n"
    )
    assert find_network_file_system(home, mounts) == (kind if is_network else "")
    assert find_network_file_system(tmp_path, mounts) == ""
    assert find_network_file_system(Path("/etc"), mounts) == "nfs"


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")(10, 10, 1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert "disk" in wrong(check_home(tmp_path / "none"))
