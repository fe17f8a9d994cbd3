"""Any order of what may happen: two sessions, their parties, faults, and a model.

The model knows which digest was acknowledged under which round and attempt. Whatever
happens, it stays the only one; results never change; nothing is a failure of the
service; and every session can be brought to an end that has a name.

Ids and keys are fixed, and envelopes are sealed without chance, so that the same steps
send the same bytes: what the service says to a byte that was changed decides what may
be drawn next.
"""

import shutil
import tempfile
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.in_process import ByHand, StartApi
from support.repeats import some, thorough

from analyst_service.credentials import rotate_key
from analyst_service.models import Contribution
from analyst_service.retention import sweep
from clustering_protocols.engine import packets
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy import envelopes
from clustering_protocols.secrecy.identities import Institution
from tests.service.samples import PARTS

Place = tuple[str, str, int, int]

SLOTS = PARTS.layout.names
ANALYST = Institution("", bytes(32))
LATE = 100  # no session here has as many rounds
ENDS = {"completed", "failed", "cancelled", "expired"}

sessions = st.integers(0, 1)
slots = st.sampled_from(SLOTS)
fates = st.sampled_from(["ok", "response lost", "twice"])


class Unhidden:
    """Replaces the suite that seals envelopes; draws nothing and hides nothing."""

    def encrypt(self, content: bytes, *_: Any, **__: Any) -> bytes:
        return bytes(48) + content  # as long as a key and a tag

    def decrypt(self, sealed: bytes, *_: Any, **__: Any) -> bytes:
        return sealed[48:]


@pytest.fixture(autouse=True)
def unhidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelopes, "_SUITE", Unhidden())


class Faults(RuleBasedStateMachine):
    def __init__(self, start: StartApi) -> None:
        super().__init__()
        self.start = start
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "identity.json").write_bytes(ANALYST.to_bytes())
        self.running = ExitStack()
        self.api = self.running.enter_context(start(self.folder))
        self.sessions: list[ByHand] = []
        self.acknowledged: dict[Place, tuple[str, dict[str, Any]]] = {}
        self.kept: dict[Place, bytes] = {}
        self.results: dict[tuple[str, str], bytes] = {}
        self.ended: dict[str, str] = {}

    def teardown(self) -> None:
        try:
            self.bring_to_an_end()
        finally:
            self.running.close()
            shutil.rmtree(self.folder)

    @initialize(void=st.integers(0, 1), quorum=st.sampled_from([None, 1]))
    def open(self, void: int, quorum: int | None) -> None:
        """One session is in its first round; the other waits for its parties."""
        for name, params in (
            ("voids", Dummy(void_attempts=void)),
            ("waits", Dummy(quorum=quorum)),
        ):
            self.sessions.append(self.api.open(params, PARTS, session=name))
        self.sessions[0].join()

    # What parties do

    @rule(session=sessions, slot=slots, fate=fates)
    def join(self, session: int, slot: str, fate: str) -> None:
        """Also again: a restart that lost its token."""
        opened = self.sessions[session]
        for _ in range(2 if fate == "twice" else 1):
            answer = self.ask(opened.try_join(slot))
            if answer.status_code == 200 and fate != "response lost":
                opened.tokens[slot] = answer.json()["token"]

    @rule(session=sessions, slot=slots, fate=fates)
    def answer(self, session: int, slot: str, fate: str) -> None:
        opened = self.sessions[session]
        if slot not in opened.tokens:
            return
        task = self.ask(opened.task(slot))
        if task.status_code != 200:
            return
        place = self.place(opened, slot, task.content)
        content = self.kept.get(place) or opened.reply(slot)
        self.kept[place] = content
        for _ in range(2 if fate == "twice" else 1):
            self.upload(opened, place, content, lost=fate == "response lost")

    @precondition(lambda self: self.kept)
    @rule(which=st.integers(0))
    def replay(self, which: int) -> None:
        """The stored bytes again, however late, also from another's slot."""
        place, content = sorted(self.kept.items())[which % len(self.kept)]
        opened = next(s for s in self.sessions if s.id == place[0])
        self.upload(opened, place, content)
        for slot in set(SLOTS) & opened.tokens.keys() - {place[1]}:
            stolen = self.ask(opened.put(slot, content))
            assert stolen.status_code in {401, 409, 410, 422}

    @precondition(lambda self: self.kept)
    @rule(which=st.integers(0), flip=st.integers(0))
    def garbage(self, which: int, flip: int) -> None:
        """Other bytes under a round and attempt that were answered, or are open."""
        place, content = sorted(self.kept.items())[which % len(self.kept)]
        opened = next(s for s in self.sessions if s.id == place[0])
        changed = bytearray(content)
        changed[flip % len(changed)] ^= 1
        path = f"{opened.path}/rounds/{place[2]}/attempts/{place[3]}/contribution"
        refusal = self.ask(opened.put(place[1], bytes(changed), path))
        assert not refusal.is_success or place not in self.acknowledged
        if refusal.is_success:  # a value was changed within what is declared
            self.kept[place] = bytes(changed)
            self.note(place, bytes(changed), refusal)

    @rule(session=sessions, slot=slots, ahead=st.integers(1, 3))
    def wrong_round(self, session: int, slot: str, ahead: int) -> None:
        opened = self.sessions[session]
        if slot not in opened.tokens:
            return
        path = f"{opened.path}/rounds/{LATE + ahead}/attempts/1/contribution"
        refusal = self.ask(opened.put(slot, b"x" * ahead, path))
        assert refusal.status_code in {401, 409, 410}

    # What happens to the analyst

    @rule()
    def step(self) -> None:
        self.api.turn()

    @rule()
    def restart(self) -> None:
        time = self.api.clock.time
        self.running.close()
        self.api = self.running.enter_context(self.start(self.folder))
        self.api.clock.time = time
        for opened in self.sessions:
            opened.api = self.api

    @rule(seconds=st.sampled_from([-3600, -60, 1, 600, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.api.clock.forward(seconds)

    @rule()
    def collect_garbage(self) -> None:
        sweep(self.api.service)

    # What coordinators do

    @rule(session=sessions)
    def rotate(self, session: int) -> None:
        opened = self.sessions[session]
        key_id = self.api.caller(opened.key).credential_id
        database = self.api.service.database
        opened.key = database.transact(rotate_key, key_id, 10**8, 0)

    @precondition(lambda self: len(self.ended) == 1)
    @rule(session=sessions)
    def cancel(self, session: int) -> None:
        self.ask(self.sessions[session].cancel())

    @rule(session=sessions)
    def read_results(self, session: int) -> None:
        opened = self.sessions[session]
        for who, secret in {**opened.tokens, "": opened.key}.items():
            path = f"{opened.path}/result"
            answer = self.ask(self.api.send("GET", path, secret))
            if answer.is_success:
                first = self.results.setdefault((opened.id, who), answer.content)
                assert answer.content == first

    # What always holds

    @invariant()
    def an_end_stays_and_has_a_reason(self) -> None:
        for opened in self.sessions:
            status = opened.status
            assert self.ended.get(opened.id) in {None, status["state"]}
            if status["state"] in ENDS:
                self.ended[opened.id] = status["state"]
                assert (status["state"] == "completed") == (status["reason"] is None)

    @invariant()
    def what_was_acknowledged_is_stored_once_and_nothing_else(self) -> None:
        ids = [opened.id for opened in self.sessions]
        with self.api.service.database.read() as transaction:
            rows = transaction.query(Contribution).filter(
                Contribution.session_id.in_(ids)
            )
            stored = {
                (row.session_id, row.slot, row.round, row.attempt): row.digest
                for row in rows
            }
        for place, (digest, _) in self.acknowledged.items():
            assert stored[place] == digest
        for place, digest in stored.items():
            assert digest == sha256(self.kept[place]).hexdigest()

    def ask(self, response: httpx.Response) -> httpx.Response:
        assert response.status_code < 500, response.text
        return response

    def place(self, opened: ByHand, slot: str, task: bytes) -> Place:
        address = packets.parse(task).address
        return opened.id, slot, address.round, address.attempt

    def upload(
        self, opened: ByHand, place: Place, content: bytes, *, lost: bool = False
    ) -> None:
        answer = self.ask(opened.put(place[1], content))
        if answer.is_success and not lost:
            self.note(place, content, answer)

    def note(self, place: Place, content: bytes, answer: httpx.Response) -> None:
        digest, receipt = sha256(content).hexdigest(), answer.json()
        assert receipt["digest"] == digest
        first = self.acknowledged.setdefault(place, (digest, receipt))
        assert first == (digest, receipt)

    def bring_to_an_end(self) -> None:
        """Whatever has happened, time ends every session, and its audit is whole."""
        for _ in range(4):
            self.api.turn()
            self.api.clock.forward(8 * 86_400)
            self.api.turn()
        for opened in self.sessions:
            assert opened.status["state"] in ENDS
            places = [
                (e["slot"], e["round"], e["attempt"])
                for e in opened.audit
                if e["event"] == "contribution"
            ]
            assert len(set(places)) == len(places)


@pytest.mark.thorough
@pytest.mark.threat(36, 37, 39, 42, 43, 48, 52, 62, 63)
@pytest.mark.parametrize(
    "part", some(range(4), ci=1)
)  # side by side, each draws its own
def test_any_order_of_what_may_happen_loses_and_doubles_nothing(
    start_api: Any, part: int
) -> None:
    del part
    run_state_machine_as_test(
        partial(Faults, start_api.func),
        settings=settings(
            max_examples=thorough(ci=8, nightly=50),
            stateful_step_count=thorough(ci=30, nightly=400),
            suppress_health_check=list(HealthCheck),
        ),
    )
