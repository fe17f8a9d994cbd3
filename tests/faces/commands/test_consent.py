"""What a party's people read and accept before they join."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.terminal import ACCEPT, RISK, Terminal, opened

from party_sdk.cli.terminal import asker
from party_sdk.party.party_index import sessions_in

ROWS = ("--id-column", "id")


def invited(online: Terminal) -> tuple[str, str]:
    """A session for one party, and @FILE with its invitation."""
    session, invitation = opened(online)
    return session, f"@{online.file('invitation', invitation)}"


def printed_command(shown: str) -> list[str]:
    """The words of a command that is printed over several lines, without its name."""
    _, _, printed = shown.partition("accepts all of them with:\n")
    command = []
    for line in printed.splitlines():
        command.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            break
    name, *words = shlex.split(" ".join(command))
    assert name == "coterie"
    return words


def test_join_shows_the_terms_and_every_risk_before_it_refuses(
    online: Terminal,
) -> None:
    session, invitation = invited(online)
    refused = online("party", "join", invitation, expect=3)
    assert "Who takes part" in refused.stdout
    assert "What will be sent" in refused.stdout
    for code in (RISK, "house.open-slot"):
        assert refused.output.count(f"risk {code}: ") == 1
    assert not online("party", "join", invitation, expect=3).stdout.count("you are")
    assert session not in sessions_in(online.folder / "home")


def test_the_printed_command_accepts_all_risks_for_run(
    online: Terminal, rows: Path
) -> None:
    _, invitation = invited(online)
    refused = online("party", "join", invitation, expect=3)
    joined = online(*printed_command(refused.stderr))
    _, _, following = joined.stderr.partition("Next: coterie ")
    told = following.replace("FILE", str(rows)).replace("COLUMN", "id")
    assert invitation in told
    assert "12 labels" in online(*shlex.split(told)).stdout


def test_accepted_risks_hold_for_resume_without_invitation(
    online: Terminal, rows: Path
) -> None:
    session, invitation = opened(online)
    joined = online("party", "join", invitation, *ACCEPT)
    assert invitation not in joined.stderr, "it is a secret"
    _, _, following = joined.stderr.partition("Next: coterie ")
    told = following.replace("FILE", str(rows)).replace("COLUMN", "id")
    assert told.startswith(f"party run {session} r1c1")
    assert "12 labels" in online(*shlex.split(told)).stdout


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_asks_once_for_all_risks(
    online: Terminal, monkeypatch: pytest.MonkeyPatch, *, answer: bool
) -> None:
    _, invitation = opened(online)
    asked: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return answer

    there = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(asker, "sys", there)
    monkeypatch.setattr("click.confirm", confirm)
    shown = online("party", "join", invitation, expect=0 if answer else 3).output
    assert asked == ["Do you accept these 2 risks?"]
    for code in (RISK, "house.open-slot"):
        assert shown.count(f"risk {code}: ") == 1, "in the terms, and not again"


def test_nobody_is_asked_for_risks_of_terms_that_a_guard_refuses(
    online: Terminal,
) -> None:
    _, invitation = opened(online)
    refused = online(
        "party", "join", invitation, "--guard", 'protocols=["dc"]', expect=3
    )
    assert "'protocols'" in refused.stderr
    assert "accepts all of them" not in refused.stderr


def test_an_invitation_that_was_typed_is_not_printed_again(online: Terminal) -> None:
    _, invitation = opened(online)
    refused = online("party", "join", invitation, expect=3)
    assert invitation not in refused.stderr
    assert "coterie party join INVITATION" in refused.stderr


def test_a_mistyped_risk_is_wrong_usage_and_names_the_nearest(
    terminal: Terminal,
) -> None:
    mistyped = RISK.replace("design", "desing")
    refused = terminal("party", "join", "x", "--accept-risk", mistyped, expect=2)
    assert f"Did you mean '{RISK}'?" in refused.stderr


def test_h_is_help(terminal: Terminal) -> None:
    for words in ((), ("party",), ("party", "run")):
        assert terminal(*words, "-h").stdout == terminal(*words, "--help").stdout


def test_who_stops_a_run_is_told_that_the_same_command_goes_on(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    _, invitation = opened(online)
    run = ("party", "run", invitation, "--data", rows, "--id-column", "id", *ACCEPT)
    with monkeypatch.context() as patch:
        patch.setattr("party_sdk.party.participant.Party.run", interrupted)
        assert "same command continues" in online(*run, expect=130).stderr
    assert "12 labels" in online(*run).stdout
