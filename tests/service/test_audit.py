"""The audit of the analyst and the ledger of a party, and how one checks the other."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from support.in_process import Api, StartApi

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    AuditBroken,
    Equivocation,
    StorageFull,
    TaskRefused,
)
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import hash_chain
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.answers import Receipt
from clustering_protocols.wire.http_headers import receipt_in
from coterie import Party
from party_sdk.party.party_session import PartySession
from tests.service.samples import X

ALONE = simulation.split(X, Layout.lattice(1), seed=1)
PAIR = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PAIR.layout.names


def test_an_audit_tells_who_sent_and_received_which_digest_when(api: Api) -> None:
    session = api.open(Dummy(), PAIR).join()
    tasks = {slot: session.task(slot).content for slot in (A, B)}
    api.clock.forward(5)
    replies = {slot: session.reply(slot) for slot in (A, B)}
    receipts = {slot: session.put(slot, replies[slot]).json() for slot in (A, B)}
    api.turn()
    session.finish()
    for secret in (session.tokens[A], session.key):
        api.send("GET", f"{session.path}/result", secret)
    whole = api.send("GET", f"{session.path}/audit", session.key).json()
    assert whole["next"] is None
    entries = list(hash_chain.read(whole["lines"]))
    events = [(e["event"], e.get("slot")) for e in entries]
    assert events[:9] == [
        ("opened", None),
        ("invited", A),
        ("invited", B),
        ("joined", A),
        ("joined", B),
        ("all-joined", None),
        ("round-opened", None),
        ("task-sent", A),
        ("task-sent", B),
    ]
    assert ("finished", None) in events
    opened = next(e for e in entries if e["event"] == "round-opened")
    assert opened["stage"] == "opening"
    assert events[-2:] == [("result-sent", A), ("result-sent", None)]
    for slot in (A, B):
        sent, came = [
            e for e in entries if e.get("slot") == slot and e.get("round") == 1
        ]
        assert sent["digest"] == sha256(tasks[slot]).hexdigest()
        assert came["digest"] == sha256(replies[slot]).hexdigest()
        assert came["at"] == "2026-03-01T00:00:05+00:00"
        assert came["number"] == receipts[slot]["sequence"]
    path, lines, after = f"{session.path}/audit?limit=2&after=", [], 0
    while after is not None:
        page = api.send("GET", f"{path}{after}", session.key).json()
        lines += page["lines"]
        after = page["next"]
    assert list(hash_chain.read(lines)) == entries


class Alone:
    def __init__(self, api: Api, home: Path) -> None:
        self.session = api.open(Dummy(void_attempts=1), ALONE)
        self.home, self.wire = home, api.wire()
        [self.slot] = ALONE.layout.names

    def party(self) -> Party:
        return self.session.accept(self.slot, self.home, self.wire, patience=0)

    def run(self) -> None:
        with self.party() as party:
            party.run(ALONE.data[self.slot])

    @property
    def entries(self) -> list[dict[str, Any]]:
        return PartySession(
            self.home, self.session.id, self.slot
        ).ledger.verified_entries()


@pytest.fixture
def alone(start_api: StartApi, home: Path) -> Iterator[Alone]:
    with start_api(driven=True) as api:
        yield Alone(api, home)


def fail_at(last: int) -> Callable[[httpx.Request, httpx.Response], httpx.Response]:
    """Return a function that loses the response to the upload with this number."""
    numbers = count(1)

    def lose(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path.endswith("/contribution") and next(numbers) == last:
            raise httpx.ReadError("lost")
        return response

    return lose


@pytest.mark.threat(44)
def test_a_contribution_and_its_entry_survive_a_power_cut(
    alone: Alone, tmp_path: Path
) -> None:
    """A copy of the home, taken before the first byte is sent, contains both."""
    numbers = count(1)

    def before(request: httpx.Request) -> None:
        if request.url.path.endswith("/contribution"):
            copy = tmp_path / str(next(numbers))
            shutil.copytree(alone.home, copy)
            left = PartySession(copy, alone.session.id, alone.slot)
            last = left.ledger.verified_entries()[-1]
            assert last["event"] == "sending"
            assert left.load_state().sent_contribution == request.content
            assert last["digest"] == sha256(request.content).hexdigest()

    alone.wire.before = before
    alone.run()
    assert next(numbers) == 7


def test_a_round_waits_for_the_disk_once(alone: Alone) -> None:
    """A receipt is committed before, without waiting; a lost one is requested again."""
    statements: list[str] = []
    per_round: list[list[str]] = []
    full = 2  # as SQLite numbers the levels of PRAGMA synchronous

    def before(request: httpx.Request) -> None:
        if request.url.path.endswith("/contribution"):
            per_round.append(list(statements))
            assert database.execute("PRAGMA synchronous").fetchone()[0] == full
            statements.clear()

    alone.wire.before = before
    with alone.party() as party:
        with party.stored.store.transaction() as database:
            database.set_trace_callback(statements.append)
        party.run(ALONE.data[alone.slot])
    for round_ in per_round[1:]:
        levels = [each for each in round_ if "synchronous" in each or each == "COMMIT"]
        normal, full_level = (f"PRAGMA synchronous = {n}" for n in ("NORMAL", "FULL"))
        assert levels == [normal, "COMMIT", full_level, "COMMIT"]
        assert len(round_) < 24, round_


@pytest.mark.threat(44)
def test_a_copy_of_a_home_that_is_behind_sends_nothing(
    alone: Alone, tmp_path: Path
) -> None:
    """The copy lacks rounds that the party has answered; its journal refuses the task."""
    alone.wire.after = fail_at(2)
    with pytest.raises(Exception, match="attempt"):
        alone.run()
    shutil.copytree(alone.home, tmp_path / "copy")
    alone.wire.after = fail_at(3)
    with pytest.raises(Exception, match="attempt"):
        alone.run()
    alone.home = tmp_path / "copy"
    alone.wire.after = lambda _, response: response
    alone.wire.requests.clear()
    with pytest.raises(TaskRefused, match="earlier lines"):
        alone.run()
    assert len(alone.wire.sent("/rounds/2/attempts/1/contribution")) == 1
    assert len(alone.wire.sent("/contribution")) == 1, "the bytes that both had sent"


@pytest.mark.threat(42, 44)
def test_a_retry_after_a_lost_receipt_gets_the_same_receipt(alone: Alone) -> None:
    lost: list[dict[str, Any]] = []

    def lose(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path.endswith("/contribution") and not lost:
            lost.append(json.loads(receipt_in(response.headers) or b"{}"))
            raise httpx.ReadError("lost")
        return response

    alone.wire.after = lose
    with pytest.raises(Exception, match="attempt"):
        alone.run()
    assert alone.entries[-1]["event"] == "sending"
    alone.run()
    assert [e["event"] for e in alone.entries[:3]] == ["joining", "sending", "receipt"]
    assert alone.entries[2]["sequence"] == lost[0]["sequence"]
    assert alone.entries[2]["entry"] == lost[0]["entry"]


@pytest.mark.threat(59)
def test_a_party_whose_disk_is_full_sends_nothing(alone: Alone) -> None:
    with alone.party() as party:
        party.enrol(ALONE.data[alone.slot])
        [pages] = party.stored.store.fetch_row("PRAGMA page_count")
        party.stored.store.fetch_row(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageFull, match="This machine has no room"):
            party.run(ALONE.data[alone.slot])
        party.stored.store.fetch_row("PRAGMA max_page_count = 1000000")
    n_sent = len(alone.wire.sent("/contribution"))
    events = [entry["event"] for entry in alone.entries]
    assert n_sent == events.count("sending") < 6, "what was not stored was not sent"
    alone.run()
    assert alone.entries[-1]["event"] == "receipt"


def receipt_for(digest: str, sequence: int) -> Receipt:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    here = {"session": "s", "slot": A, "round": 1, "attempt": 1}
    rest = {"size": 9, "received_at": at, "sequence": sequence, "entry": "2" * 64}
    return Receipt(**here, digest=digest, **rest)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sequence", 1), ("entry", "0" * 64), ("digest", "0" * 64), ("size", 1)],
)
def test_an_analyst_whose_receipts_differ_is_noticed(
    tmp_path: Path, name: str, value: Any
) -> None:
    """Its log was lost or changed, for example by restoring a backup."""
    ledger = PartySession(tmp_path, "s", A).ledger
    digest = "1" * 64
    receipt = receipt_for(digest, sequence=5)
    ledger.log_sending((1, 1), "0" * 64, digest, 9)
    ledger.log_receipt((1, 1), receipt)
    before = ledger.verified_entries()
    ledger.log_receipt((1, 1), receipt)
    with pytest.raises(Equivocation):
        ledger.log_receipt((1, 1), receipt.model_copy(update={name: value}))
    ledger.log_sending((2, 1), "0" * 64, digest, 9)
    with pytest.raises(Equivocation):
        ledger.log_receipt((2, 1), receipt)
    assert ledger.verified_entries()[:-1] == before


@pytest.mark.parametrize("name", ["sequence", "entry"])
def test_every_receipt_names_its_line_of_the_audit(name: str) -> None:
    """A receipt without a number would let the next one have a number used before."""
    fields = receipt_for("1" * 64, sequence=5).model_dump()
    with pytest.raises(ValidationError):
        Receipt(**{**fields, name: None})


def test_a_receipt_for_bytes_that_never_left_is_noticed(tmp_path: Path) -> None:
    ledger = PartySession(tmp_path, "s", A).ledger
    ledger.log_sending((1, 1), "0" * 64, "1" * 64, 9)
    ledger.log_receipt((1, 1), receipt_for("2" * 64, sequence=1))
    with pytest.raises(AuditBroken, match="never sent"):
        ledger.verified_entries()
