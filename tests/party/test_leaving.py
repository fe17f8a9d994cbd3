"""Saying no: a contribution that the operator refuses, and a session that is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.terminal import ACCEPT, Terminal, opened

from clustering_protocols.common.errors import Unavailable
from party_sdk.analyst_client.http_analyst import HttpAnalyst

Answering = Callable[[str], bool]
KIND = "Send it?"
UNAVAILABLE = 6


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

    resume = ("party", "run", session, "r1c1", *data)
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
    assert "The others read that you stopped for good (left)." in left.stderr
    shown = online("session", "show", session).stdout
    assert "r1c1: 12 rows, stopped for good: left" in shown
    assert "Slot 'r1c1' stopped for good (left): its people take part no more." in shown
    for command in (("run", invitation), ("run", session, "r1c1")):
        refused = online("party", *command, *data, "--confirm", expect=3)
        assert "You left this session." in refused.stderr
    assert sent(online, session) == 0


def test_who_leaves_may_say_that_the_rows_are_the_cause(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of people stay at home; the others read one of four."""
    session, invitation = opened(online)
    data = ("--data", rows, "--id-column", "id")
    confirming(monkeypatch, lambda _: False)
    online("party", "run", invitation, *data, *ACCEPT, "--confirm", expect=3)
    said = ("--because", "data", "--reason", "ward 7 is wrong")
    online("party", "leave", session, "r1c1", *said)
    shown = online("session", "show", session).stdout
    assert "stopped for good (data): its rows cannot be used." in shown
    assert "ward 7" not in shown
    online("party", "leave", session, "r1c1")  # a repeat, with another word, is none
    assert "stopped for good: data" in online("session", "show", session).stdout


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_stop_that_was_not_told_is_told_at_the_next_start(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    session, invitation = opened(online)
    data = ("--data", rows, "--id-column", "id")
    confirming(monkeypatch, lambda _: False)
    online("party", "run", invitation, *data, *ACCEPT, "--confirm", expect=3)
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise Killed if is_killed else Unavailable("The analyst is away.")

        patch.setattr(HttpAnalyst, "stop", fail)
        if is_killed:
            with pytest.raises(Killed):
                online("party", "leave", session, "r1c1")
        else:
            online("party", "leave", session, "r1c1", expect=UNAVAILABLE)
            refused = online("party", "run", session, "r1c1", *data, expect=3)
            assert "You left this session." in refused.stderr, "not that it is away"
    assert "stopped" not in online("session", "show", session).stdout
    refused = online("party", "run", session, "r1c1", *data, expect=3)
    assert "You left this session." in refused.stderr
    assert "stopped for good: left" in online("session", "show", session).stdout


def test_a_completed_session_cannot_be_left(online: Terminal, rows: Path) -> None:
    session, invitation = opened(online)
    online("party", "run", invitation, "--data", rows, "--id-column", "id", *ACCEPT)
    online("party", "leave", session, "r1c1", expect=7)
