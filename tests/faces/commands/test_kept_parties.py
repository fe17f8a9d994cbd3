"""The list of a home's sessions: where each stands, and a next command that works."""

import shlex
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.terminal import Terminal, accepting, opened

from clustering_protocols.common.errors import NotReady
from clustering_protocols.engine import Journal
from clustering_protocols.wire.states import StopReason
from party_sdk.home.clock import now
from party_sdk.home.store import store_of
from party_sdk.party.party_index import all_parties
from party_sdk.party.party_session import Identity, PartySession
from party_sdk.supervisor.orders import Order, OrderState, PartyOrder, Trouble


def test_a_home_lists_its_sessions_with_what_is_next(
    online: Terminal, rows: Path
) -> None:
    assert online.json("party", "status") == []
    done, first = opened(online)
    left, second = opened(online)
    for invitation in (first, second):
        online("party", "run", invitation, *accepting(online, invitation))
    online("party", "leave", left, "r1c1")

    listed = {each["session"]: each for each in online.json("party", "status")}
    assert listed[left]["state"] == "left"
    assert listed[done]["state"] == "accepted, not joined"
    assert listed[done]["title"] == "Wards"
    following = listed[done]["following"].replace("FILE", f"{rows} --id-column id")
    assert "12 labels" in online(*shlex.split(following)[1:]).stdout

    head, *lines = online("party", "status").stdout.splitlines()
    assert head.split() == ["SESSION", "SLOT", "STATE", "NEXT"]
    assert len(lines) == 2
    [line] = [line for line in lines if line.startswith(done)]
    assert "completed" in line
    _, _, following = line.partition("coterie ")
    online(*shlex.split(following))

    online("party", "forget", done, "r1c1", "--yes")
    listed = {each["session"]: each for each in online.json("party", "status")}
    assert listed[done]["state"] == "forgotten"


def test_nothing_is_forgotten_if_the_report_cannot_be_made(
    online: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, invitation = opened(online)
    online("party", "run", invitation, *accepting(online, invitation))
    forget = ("party", "forget", session, "r1c1", "--yes")
    unreadable = Mock(side_effect=NotReady("These terms are unreadable."))
    with monkeypatch.context() as patch:
        patch.setattr("party_sdk.application.home.run_report", unreadable)
        assert "without a report: --all." in online(*forget, expect=7).stderr
    assert online.json("party", "status")[0]["state"] == "accepted, not joined"
    online(*forget)
    assert online.json("party", "status")[0]["state"] == "forgotten"


def test_a_session_that_ended_without_a_result_is_listed_as_over(
    online: Terminal, rows: Path
) -> None:
    session, invitation = opened(online)
    online("party", "run", invitation, *accepting(online, invitation))
    refused = online("session", "cancel", session, "--reason", "a\nb", expect=5)
    assert "reason: write it in one line." in refused.stderr
    online("session", "cancel", session, "--reason", "no longer needed")
    resume = ("party", "run", session, "r1c1", "--data", rows, "--id-column", "id")
    ended = online(*resume, expect=4)
    assert "The coordinator says: no longer needed" in ended.stderr
    [found] = online.json("party", "status")
    assert found["state"] == "cancelled"
    assert found["following"] == f"coterie party forget {session} r1c1"
    told = online("party", "report", session).stdout
    assert "cancelled, without a result" in told
    left = online("party", "leave", session, "r1c1", expect=7)
    assert "cancelled: nothing more is sent" in left.stderr
    assert "no longer needed" in online(*resume, expect=4).stderr


def test_a_stored_result_or_end_counts_more_than_the_order(tmp_path: Path) -> None:
    terms = '{"about": {"title": "Wards"}, "protocol": {"name": "llf"}}'
    ends = (None, "result", "cancelled", "broken", "failed")
    for session, end in zip("abcde", ends, strict=True):
        order = PartyOrder(tmp_path, session, "north")
        order.save_order(Order(invitation=""))
        trouble = Trouble(headline="Changed", detail="The file changed.", remedy="")
        order.update_status(state=OrderState.FAILED, ended_at=now(), trouble=trouble)
        ended = end if end in {"cancelled", "failed"} else ""
        order.stored.save_identity(Identity(entropy="", terms=terms, ended=ended))
        with order.store.transaction() as database:
            if end == "result":
                row = (order.stored.id, "result", b"")
                database.execute("INSERT INTO documents VALUES (?, ?, ?)", row)
        if end == "broken":
            order.stored.save_journal(
                Journal().stop("It asked twice.", StopReason.REFUSED)
            )
    found = {party.session: party for party in all_parties(tmp_path)}
    states = ["failed: Changed", "completed", "cancelled", "failed: Changed"]
    assert [found[session].state for session in "abce"] == states
    assert found["d"].state == "stopped: the analyst broke the rules"
    assert {party.group for party in found.values()} == {"ended"}
    assert found["b"].sentence == "The labels are ready."
    assert found["b"].following == "coterie party report b north"
    assert {(party.title, party.protocol) for party in found.values()} == {
        ("Wards", "llf")
    }


def test_a_thousand_sessions_are_listed_by_one_query(tmp_path: Path) -> None:
    statements: list[str] = []
    identity = Identity(entropy="", terms='{"about": {"title": "Wards"}}')
    store = store_of(tmp_path)
    with store.transaction() as database:
        for number in range(1000):
            PartySession(tmp_path, f"s-{number:03}", "a").save_identity(identity)
        database.set_trace_callback(statements.append)
    statements.clear()
    found = list(all_parties(tmp_path))
    assert len(found) == 1000
    assert {party.title for party in found} == {"Wards"}
    assert len(statements) == 1
