"""Standing orders: run in the background, asked in files, killed anywhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.analyst_process import Analyst, wait_for as wait_longer
from support.standing import Served, an_order, supervised
from support.terminal import RISK, Terminal, opened, read

from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidParameters,
    NotReady,
    StorageFull,
)
from party_sdk.application.home import Home
from party_sdk.home.disk_room import no_room
from party_sdk.home.store import HomeStore
from party_sdk.party.participant import Party
from party_sdk.supervisor import (
    Order,
    Orders,
    OrderState,
    OrderStatus,
    PartyOrder,
    QuestionKind,
    order_runner,
)
from party_sdk.supervisor.order_runner import End, OrderRunner

RISKS = 'accepted_risks = ["dummy.by-design", "house.open-slot"]\nleast_known = 0\n'


@pytest.fixture
def home(online: Terminal) -> Path:
    path = Path(online.environment["COTERIE_HOME"])
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture
def accepting(home: Path) -> Path:
    (home / "policy.toml").write_text(RISKS)
    return home


MOMENTS = {
    "before it reads the terms": (Home, "offer"),
    "before its table": (order_runner, "digest_of"),
    "before it joins": (Party, "join"),
}
Begun = Callable[[str, str, Callable[[], object]], End]


@pytest.fixture
def begun(accepting: Path, monkeypatch: pytest.MonkeyPatch) -> Begun:
    """Run an order; something else happens at a moment of its beginning."""

    def run(session: str, moment: str, meanwhile: Callable[[], object]) -> End:
        place, name = MOMENTS[moment]
        real, left = getattr(place, name), [meanwhile]

        def met(*given: Any, **named: Any) -> object:
            if left:
                left.pop()()
            return real(*given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(place, name, met)
            return OrderRunner(accepting, session, "r1c1").run()

    return run


wait_for = partial(wait_longer, seconds=45)


def until(
    orders: Orders, session: str, *states: OrderState, slot: str = "r1c1"
) -> None:
    def reached() -> bool:
        status = orders.status(session, slot)
        done = status.state in states
        assert done or not status.is_over, status
        return done

    wait_for(reached)


def test_an_order_runs_by_itself_to_labels(
    online: Terminal, rows: Path, accepting: Path, tmp_path: Path
) -> None:
    session, invitation = opened(online)
    orders = Orders(accepting)
    labels = tmp_path / "out" / "labels.csv"
    placed = orders.place(an_order(invitation, rows, labels=labels))
    assert placed.state is OrderState.QUEUED
    with supervised(accepting):
        until(orders, session, OrderState.COMPLETED)
    assert len(read(labels)) == 12
    status = orders.status(session, "r1c1")
    assert status.title == "Wards"
    assert status.round is not None
    assert status.ended_at is not None
    with pytest.raises(NotReady, match="completed"):
        orders.place(an_order(invitation, rows))


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(
            "before it reads the terms", marks=pytest.mark.thorough(only=True)
        ),
        "before its table",
    ],
)
def test_a_newer_invitation_replaces_one_under_review(
    online: Terminal, rows: Path, accepting: Path, begun: Begun, moment: str
) -> None:
    """Anyone who began with the earlier one asks nothing and tells nothing any more."""
    session, invitation = opened(online)
    orders = Orders(accepting)
    orders.place(an_order(invitation, rows))
    later = ""

    def invited_anew() -> None:
        nonlocal later
        orders.withdraw(session, "r1c1", "not now")
        invited = online.json("session", "invite", session, "--slot", "r1c1")
        later = invited["r1c1"]
        orders.place(an_order(later, rows))

    assert begun(session, moment, invited_anew) is End.STOPPED
    assert PartyOrder(accepting, session, "r1c1").order().invitation == later
    assert orders.status(session, "r1c1").state is OrderState.QUEUED
    assert OrderRunner(accepting, session, "r1c1").run() is End.OVER
    assert orders.status(session, "r1c1").state is OrderState.COMPLETED


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(
            "before it reads the terms", marks=pytest.mark.thorough(only=True)
        ),
        "before its table",
        "before it joins",
    ],
)
def test_a_withdrawn_order_stays_withdrawn_while_it_begins(
    online: Terminal, rows: Path, accepting: Path, begun: Begun, moment: str
) -> None:
    session, invitation = opened(online)
    orders = Orders(accepting)
    orders.place(an_order(invitation, rows))
    ended = begun(session, moment, lambda: orders.withdraw(session, "r1c1", "not now"))
    assert ended is End.STOPPED
    ledger = PartyOrder(accepting, session, "r1c1").folder.ledger
    assert list(ledger.read()) == []
    status = orders.status(session, "r1c1")
    assert status.state is OrderState.DECLINED
    assert status.trouble is not None
    assert "not now" in status.trouble.detail
    assert orders.question(session, "r1c1") is None
    assert "not now" in online("session", "show", session).stdout


def test_of_two_that_tell_at_once_neither_is_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, other = PartyOrder(home, "s", "r1c1"), PartyOrder(home, "s", "r1c1")
    slow.save_order(Order(invitation=""))
    slow.tell(title="Wards")
    status, has_read, others_turn = slow.status, Event(), Event()

    def read_slowly() -> OrderStatus:
        found = status()
        has_read.set()
        others_turn.wait(0.2)
        return found

    monkeypatch.setattr(slow, "status", read_slowly)
    with ThreadPoolExecutor() as threads:
        telling = threads.submit(slow.tell, round=1)
        assert has_read.wait(10)
        other.tell(state=OrderState.DECLINED)
        others_turn.set()
        telling.result()
    found = other.status()
    assert (found.round, found.state) == (1, OrderState.DECLINED)


def test_risks_are_a_question_and_a_yes_goes_on(
    online: Terminal, rows: Path, home: Path, tmp_path: Path
) -> None:
    session, invitation = opened(online)
    orders = Orders(home)
    orders.place(an_order(invitation, rows, labels=tmp_path / "labels.csv"))
    with supervised(home):
        until(orders, session, OrderState.WAITING)
        asked = orders.question(session, "r1c1")
        assert asked is not None
        assert asked.kind is QuestionKind.RISKS
        assert set(asked.risks) == {RISK, "house.open-slot"}
        [listed] = online.json("party", "list")
        assert (listed["state"], listed["following"]) == (
            "waiting-for-you",
            "coterie ui",
        )
        orders.answer(session, "r1c1", asked.id, yes=True)
        with pytest.raises(NotReady, match="answered"):
            orders.answer(session, "r1c1", asked.id, yes=True)
        until(orders, session, OrderState.COMPLETED)


def test_each_contribution_can_be_declined_and_ends_the_sending(
    online: Terminal, rows: Path, accepting: Path
) -> None:
    session, invitation = opened(online)
    orders = Orders(accepting)
    orders.place(an_order(invitation, rows, confirm=True))
    kinds = []
    with supervised(accepting):
        while True:
            until(orders, session, OrderState.WAITING)
            asked = orders.question(session, "r1c1")
            assert asked is not None
            kinds.append(asked.kind)
            yes = asked.kind is QuestionKind.AGREEING
            orders.answer(session, "r1c1", asked.id, yes)
            if not yes:
                break
        until(orders, session, OrderState.DECLINED)
    assert kinds == [QuestionKind.AGREEING, QuestionKind.CONTRIBUTION]
    found = asked.contribution
    assert found is not None
    assert found.n_bytes > 0
    resume = ("party", "run", session, "r1c1", "--data", rows, "--id-column", "id")
    assert "--confirm" in online(*resume, expect=3).stderr
    # placed anew, a person is asked again
    orders.place(an_order(invitation, rows))
    with supervised(accepting):
        until(orders, session, OrderState.WAITING)


def child_of(process: int) -> int | None:
    """Return the process that a process has started, as Linux tells it."""
    for task in Path(f"/proc/{process}/task").iterdir():
        if children := (task / "children").read_text().split():
            return int(children[0])
    return None


def is_gone(process: int) -> bool:
    """Return whether a process has ended, anyone who reads its end."""
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("queued", marks=pytest.mark.thorough(only=True)),
        "recruiting",
        pytest.param("round", marks=pytest.mark.thorough(only=True)),
        pytest.param("labels", marks=pytest.mark.thorough(only=True)),
    ],
)
def test_a_killed_process_restarts_and_gives_the_same_labels(
    online: Terminal, rows: Path, accepting: Path, tmp_path: Path, stage: str
) -> None:
    """The other party comes late, so that each stage can be met."""
    two = ("--slot", "r1c1=1,1", "--slot", "r2c1=2,1")
    document = online.json("session", "create", "W", "--protocol", "dummy", *two)
    session = document["id"]
    orders = Orders(accepting)
    labels = tmp_path / "labels.csv"
    if stage == "labels":
        labels.mkdir()  # so that the run ends and cannot write
    orders.place(an_order(document["invitations"]["r1c1"], rows, labels=labels))
    if stage == "labels":
        labels.rmdir()
    served = Served(accepting, tmp_path / "log")
    try:
        wait_for(lambda: child_of(served.process.pid))
        if stage != "queued":
            files = PartyOrder(accepting, session, "r1c1").folder
            wait_for(lambda: files.exists and files.load_identity().token)
        if stage in {"round", "labels"}:
            orders.place(an_order(document["invitations"]["r2c1"], rows))
            wait_for(files.load_agreement)
        for _ in range(2):
            child = child_of(served.process.pid)
            if child is not None:
                os.kill(child, signal.SIGKILL)
            wait_for(lambda: "died" in served.log.read_text())
        if stage == "queued" or stage == "recruiting":
            orders.place(an_order(document["invitations"]["r2c1"], rows))
        for slot in ("r1c1", "r2c1"):
            until(orders, session, OrderState.COMPLETED, slot=slot)
        assert len(read(labels)) == 12
        assert orders.status(session, "r1c1").restarts > 0 or stage == "labels"
    finally:
        served.end(signal.SIGTERM)
    assert "p01" not in served.log.read_text()


def test_stopping_ends_the_processes_and_keeps_the_order_queued(
    online: Terminal, rows: Path, accepting: Path, tmp_path: Path
) -> None:
    two = ("--slot", "r1c1=1,1", "--slot", "r2c1=2,1")
    document = online.json("session", "create", "W", "--protocol", "dummy", *two)
    session, orders = document["id"], Orders(accepting)
    orders.place(an_order(document["invitations"]["r1c1"], rows))
    served = Served(accepting, tmp_path / "log")
    wait_for(lambda: orders.status(session, "r1c1").awaited)
    child = child_of(served.process.pid)
    assert child is not None
    assert served.end(signal.SIGTERM) == 0
    assert is_gone(child)
    status = orders.status(session, "r1c1")
    assert status.state is OrderState.QUEUED
    assert status.restarts == 0


def test_a_table_that_changed_is_refused(
    online: Terminal, rows: Path, accepting: Path
) -> None:
    session, invitation = opened(online)
    orders = Orders(accepting)
    orders.place(an_order(invitation, rows))
    rows.write_text(rows.read_text().replace("p01,1,1", "p01,1,2"))
    with supervised(accepting):
        wait_for(lambda: orders.status(session, "r1c1").state is OrderState.FAILED)
    trouble = orders.status(session, "r1c1").trouble
    assert trouble is not None
    assert "changed since" in trouble.detail


def test_a_missing_table_or_another_invitation_is_refused(
    online: Terminal, rows: Path, accepting: Path, tmp_path: Path
) -> None:
    session, invitation = opened(online)
    orders = Orders(accepting)
    with pytest.raises(InvalidParameters, match=r"none\.csv"):
        orders.place(an_order(invitation, tmp_path / "none.csv"))
    orders.place(an_order(invitation, rows))
    forged = invitation.split("/")
    forged[6] = "0" * 64  # the session secret, which nobody signed
    with pytest.raises(GuardRefused, match="another invitation"):
        orders.place(an_order("/".join(forged), rows))
    with pytest.raises(NotReady):
        orders.status(session, "elsewhere")


def test_the_status_of_an_order_holds_no_secret_and_no_row(
    online: Terminal, rows: Path, accepting: Path
) -> None:
    session, invitation = opened(online)
    orders = Orders(accepting)
    orders.place(an_order(invitation, rows))
    with supervised(accepting) as said:
        until(orders, session, OrderState.COMPLETED)
    told = orders.status(session, "r1c1").model_dump_json() + "\n".join(said)
    secrets = invitation.partition("#")[2].split("/")
    for hidden in ("p01", secrets[3], secrets[4], secrets[7]):
        assert hidden not in told


def test_an_outage_is_told_and_waited_for(
    online: Terminal, rows: Path, accepting: Path, analyst: Analyst
) -> None:
    session, invitation = opened(online)
    orders = Orders(accepting)
    analyst.kill()
    orders.place(an_order(invitation, rows))
    with supervised(accepting):
        wait_for(lambda: orders.status(session, "r1c1").outage_since)
        assert not orders.status(session, "r1c1").is_over
        analyst.start()
        until(orders, session, OrderState.COMPLETED)
    assert orders.status(session, "r1c1").outage_since is None


def test_a_withdrawn_order_sends_nothing_more(
    online: Terminal, rows: Path, accepting: Path
) -> None:
    two = ("--slot", "r1c1=1,1", "--slot", "r2c1=2,1")
    document = online.json("session", "create", "W", "--protocol", "dummy", *two)
    session, orders = document["id"], Orders(accepting)
    free, taken = document["invitations"].values()
    orders.place(an_order(free, rows))
    orders.withdraw(session, "r1c1", "not now")
    assert orders.status(session, "r1c1").state is OrderState.DECLINED
    assert "not now" in online("session", "show", session).stdout
    orders.place(an_order(taken, rows))
    with supervised(accepting):
        wait_for(lambda: orders.status(session, "r2c1").awaited)
        orders.withdraw(session, "r2c1", "never mind")
        wait_for(lambda: orders.status(session, "r2c1").state is OrderState.DECLINED)
    resume = ("party", "run", session, "r2c1", "--data", rows, "--id-column", "id")
    assert "You left" in online(*resume, expect=3).stderr


# What may go wrong at home


class FullDisk:
    """A disk that is full from some write on, until there is room again."""

    def __init__(self, patch: pytest.MonkeyPatch, after: int) -> None:
        self.left, self.hit = after, False
        transaction = HomeStore.transaction

        @contextmanager
        def within(store: HomeStore, *, durable: bool = True) -> Iterator[Any]:
            if not store._depth:
                self.left -= 1
            if self.left < 0:
                self.hit = True
                raise no_room(store.home, "Keys and answers are kept there.")
            with transaction(store, durable=durable) as database:
                yield database

        patch.setattr(HomeStore, "transaction", within)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(n, marks=[] if n in {0, 4, 13} else pytest.mark.thorough)
        for n in (0, 1, 2, 4, 6, 8, 10, 13, 16, 20, 24)
    ],
)
def test_a_full_disk_is_waited_for_and_nothing_is_lost(
    online: Terminal,
    rows: Path,
    accepting: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    session, invitation = opened(online)
    orders, labels = Orders(accepting), tmp_path / "labels.csv"
    orders.place(an_order(invitation, rows, labels=labels))
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, after)
        with suppress(StorageFull):  # which the process answers with the same code
            assert OrderRunner(accepting, session, "r1c1").run() is End.TRY_AGAIN
        assert disk.hit
    assert not orders.status(session, "r1c1").is_over
    assert OrderRunner(accepting, session, "r1c1").run() is End.OVER
    assert orders.status(session, "r1c1").state is OrderState.COMPLETED
    assert len(read(labels)) == 12


def test_an_unexpected_error_is_told_without_its_text(
    online: Terminal, rows: Path, accepting: Path, begun: Begun
) -> None:
    session, invitation = opened(online)
    orders = Orders(accepting)
    orders.place(an_order(invitation, rows))
    with pytest.raises(ValueError, match="4711") as raised:
        begun(session, "before it joins", lambda: float("4711 of somebody"))
    order = OrderRunner(accepting, session, "r1c1")
    assert order.note_failure(order_runner.place_of(raised.value)) is End.OVER
    status = orders.status(session, "r1c1")
    assert status.state is OrderState.FAILED
    told = status.model_dump_json()
    assert "4711" not in told
    assert "ValueError in test_standing_orders.py, line" in told


def test_a_party_that_runs_at_a_terminal_is_waited_for(
    online: Terminal, rows: Path, accepting: Path
) -> None:
    session, invitation = opened(online)
    Orders(accepting).place(an_order(invitation, rows))
    files = PartyOrder(accepting, session, "r1c1")
    with files.folder.lock():
        assert OrderRunner(accepting, session, "r1c1").run() is End.TRY_AGAIN
    assert OrderRunner(accepting, session, "r1c1").run() is End.OVER


def test_a_declined_safety_number_sends_nothing(
    online: Terminal, rows: Path, accepting: Path
) -> None:
    session, _invitation = opened(online)
    (accepting / "policy.toml").write_text(
        RISKS.replace("least_known = 0", "least_known = 1")
    )
    two = ("--slot", "r1c1=1,1", "--slot", "r2c1=2,1")
    document = online.json("session", "create", "W", "--protocol", "dummy", *two)
    session, orders = document["id"], Orders(accepting)
    other = accepting.parent / "other"
    other.mkdir()
    (other / "policy.toml").write_text(RISKS)
    orders.place(an_order(document["invitations"]["r1c1"], rows))
    Orders(other).place(an_order(document["invitations"]["r2c1"], rows))
    with supervised(accepting), supervised(other):
        until(orders, session, OrderState.WAITING)
        asked = orders.question(session, "r1c1")
        assert asked is not None
        assert asked.kind is QuestionKind.SAFETY_NUMBER
        assert len(asked.members) == 2
        orders.answer(session, "r1c1", asked.id, yes=False)
        until(orders, session, OrderState.DECLINED)
    ledger = PartyOrder(accepting, session, "r1c1").folder.ledger
    assert all(entry["event"] == "joining" for entry in ledger.read())
