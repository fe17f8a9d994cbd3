"""A supervisor in this process or in one of its own, and orders for it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from party_sdk.supervisor import Order, OrderedTable, Supervisor
from support.warm_child import warm_children

COTERIE = str(Path(sys.executable).parent / "coterie")


def an_order(invitation: str, table: Path | None, **more: object) -> Order:
    """An order on a file with an id column."""
    ordered = (
        None
        if table is None
        else OrderedTable(path=str(table.absolute()), id_column=("id",))
    )
    return Order(invitation=invitation, table=ordered, **more)  # type: ignore[arg-type]  # words of an order


@contextmanager
def supervised(home: Path, **options: object) -> Iterator[list[str]]:
    """Run a supervisor beside the test; lends what it says."""
    said: list[str] = []
    stop, errors = threading.Event(), []
    supervisor = Supervisor(home, say=said.append, pause=0.05, **options)  # type: ignore[arg-type]  # words of a supervisor

    def run() -> None:
        try:
            supervisor.run(stop)
        except Exception as error:  # noqa: BLE001  raised again below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    with warm_children():
        thread.start()
        try:
            yield said
        finally:
            stop.set()
            thread.join(30)
    assert not thread.is_alive()
    if errors:
        raise errors[0]


class Served:
    """`coterie party serve` as a process that can be killed."""

    def __init__(self, home: Path, log: Path, *words: str) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [COTERIE, "party", "serve", "--home", str(home), *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)
