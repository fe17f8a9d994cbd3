"""Orders of the desk: run in the background, asked in the home, killed anywhere."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.analyst_process import Analyst, wait_for
from support.standing import SupervisorProcess, an_order, supervise
from support.terminal import Terminal, opened, read

from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidParameters,
    NotReady,
    StorageFull,
)
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.numerics.data_source import MatrixSource
from party_sdk.application.home import Home
from party_sdk.application.outputs import Outputs
from party_sdk.home.clock import now
from party_sdk.home.disk_room import disk_full_error
from party_sdk.home.store import HomeStore
from party_sdk.party.participant import Party
from party_sdk.party.party_session import Consent, PartySession
from party_sdk.supervisor import order_runner, supervisor
from party_sdk.supervisor.order_runner import ExitCode, OrderAsker, OrderRunner
from party_sdk.supervisor.orders import (
    Order,
    OrderState,
    OrderStatus,
    PartyOrder,
    PendingQuestion,
    QuestionKind,
    place_order,
)

RISKS = 'accepted_risks = ["dummy.by-design", "house.open-slot"]\nleast_known = 0\n'
SLOT = "r1c1"
TWO = ("--party", "r1c1=1,1", "--party", "r2c1=2,1")


@pytest.fixture
def home(online: Terminal) -> Path:
    path = Path(online.environment["COTERIE_HOME"])
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture
def accepting(home: Path) -> Path:
    (home / "policy.toml").write_text(RISKS)
    return home


def place(home: Path, invitation: str, rows: Path, **more: Any) -> PartyOrder:
    status = place_order(home, an_order(invitation, rows, **more))
    assert status.state is OrderState.QUEUED
    return PartyOrder(home, status.session, status.slot)


@pytest.fixture
def order(online: Terminal, rows: Path, accepting: Path) -> PartyOrder:
    """An order of the only party of a session."""
    return place(accepting, opened(online)[1], rows)


def run(order: PartyOrder) -> ExitCode:
    return OrderRunner(order.home, order.session, order.slot).run()


def ended(order: PartyOrder, state: OrderState) -> str:
    """Check how an order ended; return what its status says of it."""
    status = order.status()
    assert status.state is state
    return status.trouble.detail if status.trouble else ""


def question_of(order: PartyOrder) -> PendingQuestion:
    found = order.question()
    assert found is not None
    return found


def opened_for_two(online: Terminal) -> tuple[str, str, str]:
    document = online.json("session", "create", "W", "--protocol", "dummy", *TWO)
    first, second = document["invitations"].values()
    return document["id"], first, second


def test_an_order_runs_to_labels_and_its_status_tells_no_secret(
    online: Terminal, rows: Path, accepting: Path, tmp_path: Path
) -> None:
    labels = tmp_path / "out" / "labels.csv"
    _, invitation = opened(online)
    order = place(accepting, invitation, rows, labels=labels)
    assert run(order) is ExitCode.OVER
    status = order.status()
    assert (status.state, status.title) == (OrderState.COMPLETED, "Wards")
    assert status.round is not None
    assert status.ended_at is not None
    assert len(read(labels)) == 12
    with pytest.raises(NotReady, match="completed"):
        place_order(accepting, an_order(invitation, rows))
    told = status.model_dump_json()
    secrets = invitation.partition("#")[2].split("/")
    for hidden in ("p01", secrets[3], secrets[4], secrets[7]):
        assert hidden not in told


# Placed anew, or withdrawn, while it begins

MOMENTS = {
    "before it reads the terms": (Home, "fetch_offer"),
    "before its table": (order_runner, "hash_table_file"),
    "before it joins": (Party, "join"),
}
Begun = Callable[[PartyOrder, str, Callable[[], object]], ExitCode]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    """Run an order; something else happens at a moment of its beginning."""

    def run_with(
        order: PartyOrder, moment: str, meanwhile: Callable[[], object]
    ) -> ExitCode:
        place, name = MOMENTS[moment]
        real, left = getattr(place, name), [meanwhile]

        def met(*given: Any, **named: Any) -> object:
            if left:
                left.pop()()
            return real(*given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(place, name, met)
            return run(order)

    return run_with


def test_a_newer_invitation_replaces_one_under_review(
    online: Terminal, rows: Path, order: PartyOrder, begun: Begun
) -> None:
    """Anyone who began with the earlier one asks nothing and tells nothing any more."""
    later = ""

    def invited_anew() -> None:
        nonlocal later
        order.withdraw("not now")
        later = online.json("session", "invite", order.session, "--party", SLOT)[SLOT]
        place(order.home, later, rows)

    assert begun(order, "before its table", invited_anew) is ExitCode.STOPPED
    assert order.order().invitation == later
    ended(order, OrderState.QUEUED)
    assert run(order) is ExitCode.OVER
    ended(order, OrderState.COMPLETED)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_withdrawn_order_stays_withdrawn_while_it_begins(
    online: Terminal, order: PartyOrder, begun: Begun, moment: str
) -> None:
    meanwhile = PartyOrder(order.home, order.session, order.slot)
    stopped = begun(order, moment, lambda: meanwhile.withdraw("not now"))
    assert stopped is ExitCode.STOPPED
    assert list(order.stored.ledger.verified_entries()) == []
    assert "not now" in ended(order, OrderState.DECLINED)
    assert order.question() is None
    assert "not now" in online("session", "show", order.session).stdout


def test_an_order_that_is_withdrawn_at_work_leaves_the_session(
    online: Terminal, rows: Path, order: PartyOrder
) -> None:
    ordered, home = order.order(), order.home
    assert ordered.table is not None
    policy = order_runner.read_policy(home)
    with Home(path=home).join(ordered.invitation, policy) as party:
        party.enrol(ordered.table.to_spec().open())
    with order.stored.lock():  # its process is at work
        assert order.withdraw("never mind").state is OrderState.QUEUED
    assert run(order) is ExitCode.OVER
    ended(order, OrderState.DECLINED)
    resume = ("party", "run", order.session, SLOT, "--data", rows, "--id-column", "id")
    assert "You left" in online(*resume, expect=3).stderr


@pytest.mark.parametrize("state", [OrderState.FAILED, OrderState.WAITING])
def test_an_order_withdrawn_while_a_terminal_runs_its_party_is_left_later(
    tmp_path: Path, state: OrderState
) -> None:
    order = PartyOrder(tmp_path, "s", SLOT)
    order.save_order(Order(invitation=""))
    order.update_status(state=state)
    with order.stored.lock():
        assert order.withdraw("never mind").state is OrderState.QUEUED


def test_of_two_that_tell_at_once_neither_is_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, other = PartyOrder(home, "s", SLOT), PartyOrder(home, "s", SLOT)
    slow.save_order(Order(invitation=""))
    slow.update_status(title="Wards")
    status, has_read, others_turn = slow.status, Event(), Event()

    def read_slowly() -> OrderStatus:
        found = status()
        has_read.set()
        others_turn.wait(0.2)
        return found

    monkeypatch.setattr(slow, "status", read_slowly)
    with ThreadPoolExecutor() as threads:
        telling = threads.submit(slow.update_status, round=1)
        assert has_read.wait(10)
        other.update_status(state=OrderState.DECLINED)
        others_turn.set()
        telling.result()
    found = other.status()
    assert (found.round, found.state) == (1, OrderState.DECLINED)


# Questions


def test_an_order_of_a_sheet_that_nobody_accepted_fails(order: PartyOrder) -> None:
    (order.home / "policy.toml").unlink()
    assert run(order) is ExitCode.OVER
    assert "Nobody accepted the sheet" in ended(order, OrderState.FAILED)


def test_after_a_withdrawal_a_contribution_can_be_declined(
    online: Terminal, rows: Path, order: PartyOrder
) -> None:
    session, invitation = order.session, order.order().invitation
    online("party", "run", invitation)
    Home(path=order.home).withdraw_consent(session, SLOT)
    assert run(order) is ExitCode.AWAITS_A_PERSON
    asked = question_of(order)
    assert asked.kind is QuestionKind.CONTRIBUTION
    assert asked.contribution.n_bytes > 0
    [listed] = online.json("party", "status")
    assert listed["state"].startswith("waiting-for-you")
    assert listed["following"] == "coterie ui"
    order.answer(asked.id, yes=False)
    with pytest.raises(NotReady, match="answered"):
        order.answer(asked.id, yes=True)
    assert run(order) is ExitCode.OVER
    ended(order, OrderState.DECLINED)
    resume = ("party", "run", session, SLOT, "--data", rows, "--id-column", "id")
    assert "at a terminal" in online(*resume, expect=3).stderr
    # placed anew, a person is asked again
    assert run(place(order.home, invitation, rows)) is ExitCode.AWAITS_A_PERSON


@pytest.mark.parametrize("asks", ["", "Few rows are linked."])
def test_only_a_withdrawn_consent_is_said_to_be_withdrawn(
    tmp_path: Path, asks: str
) -> None:
    """A yes to the choice is no yes to everything that was withdrawn later."""
    order = PartyOrder(tmp_path, "s", SLOT)
    order.save_order(Order(invitation=""))
    order.stored._save_consent(Consent(sheet="", at=now(), is_held=True))
    found = Inspection(
        stage="a", round=1, attempt=0, kind="k", values={}, arrays=(), envelopes=(),
        n_bytes=1, notes={}, asks=asks,
    )  # fmt: skip

    def asked() -> PendingQuestion:
        with pytest.raises(order_runner.DecisionPending):
            OrderAsker(order).approve(found)
        return question_of(order)

    first = asked()
    assert first.kind is QuestionKind.CHOICE
    assert first.sentence == f"{asks} May it be sent?".strip()
    order.answer(first.id, yes=True)
    assert OrderAsker(order).approve(found)
    order.stored.withdraw_consent()
    second = asked()
    assert second.kind is QuestionKind.CONTRIBUTION
    assert second.sentence.startswith(f"{asks} You withdrew your consent.".strip())


def test_a_declined_safety_number_sends_nothing(
    online: Terminal, rows: Path, accepting: Path, tmp_path: Path
) -> None:
    (accepting / "policy.toml").write_text(RISKS.replace("known = 0", "known = 1"))
    session, first, second = opened_for_two(online)
    other = tmp_path / "other"
    other.mkdir()
    (other / "policy.toml").write_text(RISKS)
    own, theirs = place(accepting, first, rows), place(other, second, rows)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, theirs)
        try:
            assert run(own) is ExitCode.AWAITS_A_PERSON
            asked = question_of(own)
            assert asked.kind is QuestionKind.SAFETY_NUMBER
            assert len(asked.members) == 2
            own.answer(asked.id, yes=False)
            assert run(own) is ExitCode.OVER
        finally:
            online("session", "cancel", session)
        running.result()
    ended(own, OrderState.DECLINED)
    entries = own.stored.ledger.verified_entries()
    assert all(entry["event"] == "joining" for entry in entries)


# What may go wrong


def test_a_table_that_changed_or_another_invitation_is_refused(
    online: Terminal, rows: Path, accepting: Path, tmp_path: Path
) -> None:
    session, invitation = opened(online)
    with pytest.raises(InvalidParameters, match=r"none\.csv"):
        place(accepting, invitation, tmp_path / "none.csv")
    with pytest.raises(NotReady):
        PartyOrder(accepting, session, SLOT).status()
    order = place(accepting, invitation, rows)
    forged = invitation.split("/")
    forged[6] = "0" * 64  # the session secret, which nobody signed
    with pytest.raises(GuardRefused, match="another invitation"):
        place(accepting, "/".join(forged), rows)
    rows.write_text(rows.read_text().replace("p01,1,1", "p01,1,2"))
    assert run(order) is ExitCode.OVER
    assert "changed since" in ended(order, OrderState.FAILED)


def test_an_outage_is_told_and_waited_for(order: PartyOrder, analyst: Analyst) -> None:
    analyst.kill()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, order)
        try:
            wait_for(lambda: order.status().outage_since, seconds=30)
            assert not order.status().is_over
        finally:
            analyst.start()
        assert running.result() is ExitCode.OVER
    ended(order, OrderState.COMPLETED)
    assert order.status().outage_since is None


class FullDisk:
    """A disk that is full from some write on, for this one or until there is room."""

    def __init__(self, patch: pytest.MonkeyPatch, after: int, *, once: bool) -> None:
        self.left, self.hit = after, False
        transaction = HomeStore.transaction

        @contextmanager
        def within(store: HomeStore, *, durable: bool = True) -> Iterator[Any]:
            if not store._depth:
                self.left -= 1
            if self.left < 0 and not (once and self.hit):
                self.hit = True
                raise disk_full_error(store.home, "Keys and answers are kept there.")
            with transaction(store, durable=durable) as database:
                yield database

        patch.setattr(HomeStore, "transaction", within)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(
    "after",
    [
        pytest.param(
            n, marks=() if n in {0, 4, 13} else pytest.mark.thorough(only=True)
        )
        for n in (0, 1, 2, 4, 6, 8, 10, 13, 16, 20)
    ],
)
def test_a_full_disk_is_waited_for_and_nothing_is_lost(
    online: Terminal,
    rows: Path,
    accepting: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    *,
    once: bool,
) -> None:
    labels = tmp_path / "labels.csv"
    order = place(accepting, opened(online)[1], rows, labels=labels)
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, after, once=once)
        with suppress(StorageFull):  # which the process answers with the same code
            assert run(order) is ExitCode.TRY_AGAIN
        assert disk.hit
    assert not order.status().is_over
    assert run(order) is ExitCode.OVER
    ended(order, OrderState.COMPLETED)
    assert len(read(labels)) == 12


def test_an_unexpected_error_is_told_without_its_text(
    order: PartyOrder, begun: Begun
) -> None:
    with pytest.raises(ValueError, match="4711") as raised:
        begun(order, "before it joins", lambda: float("4711 of somebody"))
    location = order_runner.error_location(raised.value)
    runner = OrderRunner(order.home, order.session, order.slot)
    assert runner.record_failure(location) is ExitCode.OVER
    told = ended(order, OrderState.FAILED)
    assert "4711" not in order.status().model_dump_json()
    assert "ValueError in test_orders.py, line" in told


def test_a_party_that_runs_at_a_terminal_is_waited_for(order: PartyOrder) -> None:
    with order.stored.lock():
        assert run(order) is ExitCode.TRY_AGAIN
    assert run(order) is ExitCode.OVER


def test_a_second_signal_does_not_stop_the_stopping() -> None:
    """It came while the status was written: the order was taken for one that failed."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, order_runner._stop)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_description_has_no_file_of_labels(tmp_path: Path) -> None:
    member: Any = SimpleNamespace(stored=PartySession(tmp_path, "s", SLOT))
    result: Any = SimpleNamespace(is_description=True)
    outputs = Outputs(labels=tmp_path / "labels.csv")
    outputs.write_files(member, result, MatrixSource(np.zeros((1, 1))))
    assert not member.stored.written_files


# The supervisor, with processes of two lines in place of parties

DOES = """
import os, pathlib, signal, sys, time
runs = pathlib.Path(sys.argv[1], "runs")
with runs.open("a") as file:
    file.write("x")
"""


@contextmanager
def supervising(
    patch: pytest.MonkeyPatch, home: Path, does: str, *, named: bool = True
) -> Iterator[tuple[PartyOrder, Callable[[], int], list[str]]]:
    """Run a supervisor whose processes count their runs; lend order, count and log."""
    files = PartyOrder(home, "s", SLOT)
    files.save_order(an_order("", home / "rows.csv" if named else None))
    runs = home / "runs"
    runs.touch()
    patch.setattr(supervisor, "PROGRAM", [sys.executable, "-S", "-c", DOES + does])
    said: list[str] = []
    watching = supervisor.Supervisor(home, said.append, pause=0.02)
    watching.start()
    try:
        yield files, lambda: runs.stat().st_size, said
    finally:
        watching.stop()


@pytest.mark.parametrize(
    ("does", "told", "restarts"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "died (SIGKILL), restarts in", 2),
        ("sys.exit(75)", "tried again in", 0),
    ],
)
def test_a_process_that_died_or_asks_for_it_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, told: str, restarts: int
) -> None:
    with supervising(monkeypatch, tmp_path, does) as (files, n_runs, said):
        wait_for(lambda: len([line for line in said if told in line]) >= 2)
        wait_for(lambda: files.status().restarts >= restarts)
        assert n_runs() == 2
    pauses = [line.rpartition("in ")[2] for line in said if told in line]
    assert pauses[:2] == ["1 s", "2 s"]


def test_a_process_that_cannot_begin_ends_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervising(monkeypatch, tmp_path, "sys.exit(7)") as (files, n_runs, _):
        wait_for(lambda: files.status().is_over)
        assert n_runs() == 1
    assert files.status().state is OrderState.FAILED


def test_a_supervisor_goes_on_after_an_unexpected_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = supervisor.order_versions, [OSError(), ValueError("4711")]

    def fail_first(home: Path) -> object:
        if failures:
            raise failures.pop()
        return real(home)

    monkeypatch.setattr(supervisor, "_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(supervisor, "order_versions", fail_first)
    with supervising(monkeypatch, tmp_path, "sys.exit(7)") as (files, _, said):
        wait_for(lambda: files.status().is_over)
    assert [line for line in said if "unexpected" in line and "OSError" in line]
    assert "4711" not in "".join(said)


def test_an_unreadable_order_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = PartyOrder(tmp_path, "broken", SLOT)
    broken.save_order(Order(invitation=""))
    with broken.store.transaction() as database:
        database.execute("UPDATE orders SET content = '{\"secret\": 4711}'")
    monkeypatch.setattr(supervisor, "_RETRY_SECONDS", 0.02)
    with supervising(monkeypatch, tmp_path, "time.sleep(60)") as (_, n_runs, said):
        wait_for(n_runs)
        Event().wait(0.2)
        assert n_runs() == 1, "it is not stopped and started again and again"
    assert [line for line in said if "broken" in line] == [
        f"broken {SLOT}: this order cannot be read"
    ]
    assert "4711" not in "".join(said)


@pytest.mark.parametrize("ends", ["withdrawn", "the supervisor is stopped"])
def test_a_process_at_work_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    ready, stopped = tmp_path / "ready", tmp_path / "stopped"
    does = (
        f"signal.signal(signal.SIGTERM, lambda *_: pathlib.Path({str(stopped)!r}).touch()"
        f" or os._exit(130))\npathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)"
    )
    with supervising(monkeypatch, tmp_path, does) as (files, _, _):
        wait_for(ready.exists)
        if ends == "withdrawn":
            files.save_order(files.order().model_copy(update={"withdrawn": ""}))
            wait_for(stopped.exists, seconds=20)
    assert stopped.exists()


def test_orders_without_a_table_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervising(monkeypatch, tmp_path, "", named=False) as (files, n_runs, _):
        Event().wait(0.2)
        assert n_runs() == 0
        files.save_order(an_order("", tmp_path / "rows.csv"))
        wait_for(n_runs)


# One whole session with real processes


def child_of(process: int) -> int | None:
    for task in Path(f"/proc/{process}/task").iterdir():
        if children := (task / "children").read_text().split():
            return int(children[0])
    return None


def test_killed_orders_and_supervisors_end_with_the_same_labels(
    online: Terminal, rows: Path, accepting: Path, tmp_path: Path
) -> None:
    """A process while others join, and all of them while labels are written."""
    _, first, second = opened_for_two(online)
    labels = tmp_path / "labels.csv"
    order = place(accepting, first, rows, labels=labels)
    folder = order.stored
    served = SupervisorProcess(accepting, tmp_path / "log")
    try:
        wait_for(lambda: folder.exists and folder.load_identity().token, seconds=60)
        os.kill(child_of(served.process.pid) or 0, signal.SIGKILL)
        wait_for(lambda: order.status().restarts and not folder.is_free)
        pipe = tmp_path / ".labels.csv.new"  # nobody reads it: who writes labels waits
        os.mkfifo(pipe)
        other = place(accepting, second, rows)
        wait_for(lambda: folder.result is not None, seconds=60)
    finally:
        served.end(signal.SIGKILL)
    assert not labels.exists()
    pipe.unlink()

    def both_are_over() -> bool:
        found = [placed.status().state for placed in (order, other)]
        assert OrderState.FAILED not in found
        return set(found) == {OrderState.COMPLETED}

    with supervise(accepting):  # processes of the one before may still be ending
        wait_for(both_are_over, seconds=60)
    assert [line["label"] for line in read(labels)] == [str(n % 2) for n in range(12)]
    assert not list(tmp_path.glob(".labels*")), "half a file is left behind"
    entries = folder.ledger.verified_entries()
    assert [entry["event"] for entry in entries].count("joining") == 1
    sent = [e for e in entries if e["event"] == "sending"]
    assert len({(e["round"], e["attempt"]) for e in sent}) == len(
        {(e["round"], e["attempt"], e["digest"]) for e in sent}
    ), "each round left as one digest"
    assert "p01" not in (tmp_path / "log").read_text()
