"""A supervisor killed at any moment: no order lost, none run twice at once, same labels."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.analyst_process import wait_for as wait_longer
from support.standing import Served, an_order, supervised
from support.terminal import Terminal, read

from party_sdk.party.party_session import PartySession
from party_sdk.supervisor import Orders, OrderState, PartyOrder, order_runner

RISKS = """accepted_risks = ["dummy.by-design", "house.open-slot"]
least_known = 0
"""
TWO = ("--slot", "r1c1=1,1", "--slot", "r2c1=2,1")


wait_for: Callable[..., None] = partial(wait_longer, seconds=120)


@pytest.fixture
def home(online: Terminal) -> Path:
    path = Path(online.environment["COTERIE_HOME"])
    path.mkdir(exist_ok=True)
    (path / "policy.toml").write_text(RISKS)
    return path


def document_of(online: Terminal) -> Any:
    return online.json("session", "create", "W", "--protocol", "dummy", *TWO)


def both_end(orders: Orders, session: str, seconds: float = 120) -> None:
    def done() -> bool:
        found = [orders.status(session, slot) for slot in ("r1c1", "r2c1")]
        assert all(
            each.state is OrderState.COMPLETED or not each.is_over for each in found
        ), found
        return all(each.state is OrderState.COMPLETED for each in found)

    wait_longer(done, seconds=seconds)


def undisturbed(online: Terminal, home: Path, rows: Path) -> dict[str, str]:
    """Labels of the same tables where nobody is killed."""
    document, labels = document_of(online), online.folder / "undisturbed.csv"
    orders = Orders(home)
    for slot, where in (("r1c1", labels), ("r2c1", None)):
        orders.place(an_order(document["invitations"][slot], rows, labels=where))
    with supervised(home):
        both_end(orders, document["id"])
    return labels_in(labels)


def labels_in(path: Path) -> dict[str, str]:
    return {row["id"]: row["label"] for row in read(path)}


def sent_once(folder: PartySession) -> None:
    """Every round left as one digest, and the slot was taken once."""
    entries = folder.ledger.read()
    assert [entry["event"] for entry in entries].count("joining") == 1
    left: dict[tuple[int, int], set[str]] = {}
    for entry in entries:
        if entry["event"] == "sending":
            place = entry["round"], entry["attempt"]
            left.setdefault(place, set()).add(entry["digest"])
    assert left
    assert all(len(digests) == 1 for digests in left.values())


@contextmanager
def writing_blocked(labels: Path) -> Iterator[None]:
    """A pipe that nobody reads, where labels are written before they get their name."""
    pipe = labels.with_name(f".{labels.name}.new")
    os.mkfifo(pipe)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            pipe.unlink()


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("after its upload", marks=pytest.mark.thorough(only=True)),
        "while labels are written",
    ],
)
def test_the_next_one_ends_with_the_same_labels(
    online: Terminal, rows: Path, home: Path, stage: str
) -> None:
    expected = undisturbed(online, home, rows)
    document, labels = document_of(online), online.folder / "labels.csv"
    session, orders = document["id"], Orders(home)
    orders.place(an_order(document["invitations"]["r1c1"], rows, labels=labels))
    folder = PartyOrder(home, session, "r1c1").folder
    served = Served(home, online.folder / "log")
    wait_for(lambda: folder.exists and folder.load_identity().token)
    if stage == "after its upload":
        orders.place(an_order(document["invitations"]["r2c1"], rows))
        wait_for(
            lambda: "receipt" in [entry["event"] for entry in folder.ledger.read()]
        )
        assert not labels.exists()
        served.end(signal.SIGKILL)
    else:
        with writing_blocked(labels):
            orders.place(an_order(document["invitations"]["r2c1"], rows))
            wait_for(lambda: folder.result is not None)
            served.end(signal.SIGKILL)
            assert not labels.exists()
    with supervised(home):  # at once: processes of the one before may still be ending
        both_end(orders, session)
    assert labels_in(labels) == expected
    sent_once(folder)
    assert not list(labels.parent.glob(".labels*")), "half a file is left behind"


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
