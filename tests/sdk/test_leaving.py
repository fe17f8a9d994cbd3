"""Saying no: a contribution that the operator refuses, and a session that is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.terminal import ACCEPT, Terminal, opened

Answering = Callable[[str], bool]
KIND = "Send it?"


def confirming(patch: pytest.MonkeyPatch, answer: Answering) -> list[str]:
    """Answer questions; return those that were asked."""
    asked: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return answer(question)

    def prompt(question: str, **_: object) -> str:
        return "all" if confirm(question) else "no"

    patch.setattr("click.confirm", confirm)
    patch.setattr("click.prompt", prompt)
    return asked


def sent(online: Terminal, session: str) -> int:
    entries = online.json("party", "audit", session, "r1c1")
    return sum('"sending"' in line for line in entries["lines"])


def test_what_was_refused_is_not_sent_by_a_resume(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, invitation = opened(online)
    data = ("--data", rows, "--id-column", "id")
    asked = confirming(monkeypatch, lambda question: not question.startswith(KIND))
    online("party", "run", invitation, *data, *ACCEPT, "--confirm", expect=3)
    assert asked[0] == "Send these, now and in later rounds?"
    assert [each.startswith(KIND) for each in asked] == [False, True]
    before = sent(online, session)

    resume = ("party", "resume", session, "r1c1", *data)
    refused = online(*resume, expect=3)
    assert "--confirm" in refused.stderr
    online("party", "run", invitation, *data, expect=3)
    assert sent(online, session) == before, "a no stands, whichever command continues"

    confirming(monkeypatch, lambda _: True)
    assert "12 labels" in online(*resume, "--confirm").stdout


def test_a_no_to_keys_and_digests_sends_nothing(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, invitation = opened(online)
    data = ("--data", rows, "--id-column", "id")
    asked = confirming(monkeypatch, lambda _: False)
    online("party", "run", invitation, *data, *ACCEPT, "--confirm", expect=3)
    assert len(asked) == 1
    assert sent(online, session) == 0


def test_who_leaves_before_joining_declines_with_a_reason(
    online: Terminal, rows: Path
) -> None:
    session, invitation = opened(online)
    online("party", "join", invitation, *ACCEPT)
    left = online("party", "leave", session, "r1c1", "--reason", "no ethics vote")
    assert "reads that you decline" in left.stderr
    assert "no ethics vote" in online("session", "show", session).stdout
    run = ("party", "run", invitation, "--data", rows, "--id-column", "id")
    assert "You left this session: no ethics vote" in online(*run, expect=3).stderr


def test_a_party_that_left_sends_nothing_more(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, invitation = opened(online)
    data = ("--data", rows, "--id-column", "id")
    confirming(monkeypatch, lambda _: False)
    online("party", "run", invitation, *data, *ACCEPT, "--confirm", expect=3)
    left = online("party", "leave", session, "r1c1")
    assert f"coterie session cancel {session}" in left.stderr
    for command in (("run", invitation), ("resume", session, "r1c1")):
        refused = online("party", *command, *data, "--confirm", expect=3)
        assert "You left this session." in refused.stderr
    assert sent(online, session) == 0


def test_a_completed_session_cannot_be_left(online: Terminal, rows: Path) -> None:
    session, invitation = opened(online)
    online("party", "run", invitation, "--data", rows, "--id-column", "id", *ACCEPT)
    online("party", "leave", session, "r1c1", expect=7)
