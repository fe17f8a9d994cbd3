"""A supervisor in this process or in one of its own, and orders for it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from party_sdk.supervisor.orders import Order, OrderedTable
from party_sdk.supervisor.supervisor import Supervisor
from support.warm_child import warm_children


def an_order(invitation: str, table: Path | None, **more: object) -> Order:
    """Return an order, on a table with an id column if there is one."""
    ordered = (
        None
        if table is None
        else OrderedTable(path=str(table.absolute()), id_column=("id",))
    )
    return Order(invitation=invitation, table=ordered, **more)  # type: ignore[arg-type]  # words of an order


@contextmanager
def supervise(home: Path) -> Iterator[list[str]]:
    """Run a supervisor beside the test; lends what it says."""
    said: list[str] = []
    supervisor = Supervisor(home, said.append, pause=0.05)
    with warm_children():
        supervisor.start()
        try:
            yield said
        finally:
            supervisor.stop()


PROGRAM = """
import signal, sys, threading
from pathlib import Path
from party_sdk.supervisor.supervisor import Supervisor
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
supervisor = Supervisor(Path(sys.argv[1]), lambda line: print(line, flush=True))
supervisor.start()
stop.wait()
supervisor.stop()
"""


class SupervisorProcess:
    """A supervisor in a process that can be killed, as that of the desk."""

    def __init__(self, home: Path, log: Path) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(home)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)
