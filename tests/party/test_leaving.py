"""Saying no: a contribution that the operator refuses, and a session that is left."""

from pathlib import Path

import pytest
from support.terminal import ALONE, Terminal, accepting, answer_all, opened, running

from clustering_protocols.common.errors import Unavailable
from party_sdk.analyst_client.http_analyst import HttpAnalyst

UNAVAILABLE = 6


def refusing(
    online: Terminal, rows: Path, patch: pytest.MonkeyPatch, *more: str
) -> tuple[str, str, tuple[object, ...]]:
    """A party that withdrew its consent, and says no at a terminal when it is asked."""
    session, invitation = opened(online)
    data = ("--data", rows, "--id-column", "id")
    online("party", "run", invitation, *accepting(online, invitation))
    online("party", "status", session, "r1c1", "--withdraw")
    with answer_all(patch, yes=False) as asked:
        run = ("party", "run", session, "r1c1", *data, *ALONE, *more)
        online(*run, expect=3)
    assert asked == ["Send it, and from now on everything that the sheet lists?"]
    return session, invitation, (*data, *ALONE)


def sent(online: Terminal, session: str) -> int:
    entries = online.json("party", "audit", session, "r1c1")
    return sum('"sending"' in line for line in entries["lines"])


def test_what_was_refused_is_not_sent_by_a_resume(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, invitation, more = refusing(online, rows, monkeypatch)
    assert sent(online, session) == 0
    resume = ("party", "run", session, "r1c1", *more)
    assert "an earlier contribution" in online(*resume, expect=3).stderr
    online("party", "run", invitation, *more, expect=3)
    assert sent(online, session) == 0, "a no stands, whichever command continues"
    with answer_all(monkeypatch, yes=True) as asked:
        assert "12 labels" in online(*resume).stdout
    assert len(asked) == 1, "one yes is to the rest of the session"


def test_the_sheet_is_accepted_again_without_a_terminal(
    online: Terminal, rows: Path
) -> None:
    session, invitation = opened(online)
    run = ("party", "run", invitation, "--data", rows, "--id-column", "id", *ALONE)
    accept = accepting(online, invitation)
    online("party", "run", invitation, *accept)
    online("party", "status", session, "r1c1", "--withdraw")
    assert "You withdrew your consent" in online(*run, expect=3).stderr
    assert "12 labels" in online(*run, *accept[:2]).stdout


def test_who_leaves_before_joining_declines_with_a_reason(
    online: Terminal, rows: Path
) -> None:
    session, invitation = opened(online)
    online("party", "run", invitation, *accepting(online, invitation))
    left = online("party", "leave", session, "r1c1", "--reason", "no ethics vote")
    assert "reads that you decline" in left.stderr
    assert "no ethics vote" in online("session", "show", session).stdout
    run = ("party", "run", invitation, "--data", rows, "--id-column", "id")
    assert "You left this session: no ethics vote" in online(*run, expect=3).stderr


def test_a_party_that_left_sends_nothing_more(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, invitation, data = refusing(online, rows, monkeypatch)
    left = online("party", "leave", session, "r1c1")
    assert "The others read that you stopped for good (left)." in left.stderr
    shown = online("session", "show", session).stdout
    assert "r1c1: 12 rows, stopped for good: left" in shown
    assert (
        "Slot 'r1c1' stopped for good (left): its people no longer take part." in shown
    )
    for command in (("run", invitation), ("run", session, "r1c1")):
        refused = online("party", *command, *data, expect=3)
        assert "You left this session." in refused.stderr
    assert sent(online, session) == 0


def test_who_leaves_may_say_that_the_rows_are_the_cause(
    online: Terminal, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of people stay at home; the others read one of four."""
    session, _, _ = refusing(online, rows, monkeypatch)
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
    session, _, data = refusing(online, rows, monkeypatch)
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
    online(*running(online, invitation, rows))
    online("party", "leave", session, "r1c1", expect=7)
