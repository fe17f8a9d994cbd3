"""What a shell offers on the tab key, asked for as shells ask."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from support.terminal import Terminal

from party_sdk.cli import main
from party_sdk.coordinator.session import StoredSession
from party_sdk.party.party_session import Identity, PartySession

Offered = Callable[..., list[str]]
BIN = Path(sys.executable).parent


@pytest.fixture
def offered(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Offered:
    """Ask as the completion of bash does: words, and the one that is begun."""
    monkeypatch.setenv("COTERIE_HOME", terminal.environment["COTERIE_HOME"])

    def ask(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(["coterie", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        asked = BashComplete(main, {}, "coterie", "_COTERIE_COMPLETE")
        lines = asked.complete().splitlines()
        return [line.partition(",")[2] for line in lines]

    home = Path(terminal.environment["COTERIE_HOME"])
    for session, slot in (("wards", "north"), ("wards", "south"), ("wine", "clinic")):
        stored(home, session, slot)
    opened(home, "checkups")
    return ask


def stored(home: Path, session: str, slot: str) -> None:
    PartySession(home, session, slot).save_identity(Identity(entropy="", terms=""))


def opened(home: Path, session: str) -> None:
    secret = StoredSession(url="", entropy="", terms="", coordinator="", signature="")
    secret.save(home, session)


def test_protocols_are_offered(offered: Offered) -> None:
    assert "fccm" in offered("simulate", "")
    assert offered("protocols", "fc") == ["fccm"]
    assert offered("session", "create", "T", "--protocol", "ll") == ["llf"]


def test_sessions_and_slots_are_those_of_the_home(
    offered: Offered, tmp_path: Path
) -> None:
    assert offered("party", "status", "") == ["wards", "wine"]
    assert offered("party", "run", "wards", "") == ["north", "south"]
    assert offered("party", "status", "wards", "so") == ["south"]
    assert offered("party", "report", "wine", "") == ["clinic"]
    assert offered("session", "show", "") == ["checkups"]
    other = tmp_path / "other"
    stored(other, "elsewhere", "ward")
    opened(other, "old")
    assert offered("party", "status", "--home", str(other), "") == ["elsewhere"]
    assert offered("session", "--home", str(other), "show", "") == ["old"]


def test_files_of_invitations_are_offered(offered: Offered, terminal: Terminal) -> None:
    terminal.file("north.invitation", "x")
    (terminal.folder / "letters").mkdir()
    terminal.file("letters/south.invitation", "x")
    assert {"north.invitation", "letters/"} <= set(offered("party", "run", ""))
    assert offered("party", "run", "no") == ["north.invitation"]
    assert offered("party", "run", "@letters/") == ["@letters/south.invitation"]


def test_completing_reads_no_standard_input(
    offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "--accept" in offered("party", "run", "-", "--acc")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_printed_script_is_one_of_its_shell(shell: str) -> None:
    made = subprocess.run(
        [BIN / "coterie"],
        env={"_COTERIE_COMPLETE": f"{shell}_source", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_COTERIE_COMPLETE" in made.stdout
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=made.stdout, text=True, check=True)
