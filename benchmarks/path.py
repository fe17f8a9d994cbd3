"""How far one session goes through the code: files, calls between them, and returns.

    python -m benchmarks.path [--files]

One party of `dummy` runs its command against an analyst in the same process, over HTTP.
Counted are product files of which a function is called from the command to the labels,
the functions, the calls that cross from one file into another, and those of them that
go back into a file that waits for them. Opening the session is not counted.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Final
from unittest.mock import patch

import uvicorn

from analyst_service.app import create_app
from analyst_service.auth.service import AuthService, Role
from analyst_service.jobs import worker
from analyst_service.jobs.driver import Driver
from analyst_service.jobs.processes import Process
from analyst_service.settings import Settings
from analyst_service.storage.database import Database
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from coterie import Coordinator
from party_sdk.cli import main as coterie

ROOT: Final = Path(__file__).resolve().parents[1]
PRODUCT: Final = (
    "analyst_service",
    "clustering_protocols",
    "coterie_pages",
    "party_sdk",
)
_PREFIXES: Final = tuple(f"{ROOT / name}/" for name in PRODUCT)


@dataclass
class Trace:
    """What was called while it was on.

    files: how often each was entered from another.
    """

    is_on: bool = False
    files: Counter[str] = field(default_factory=Counter)
    functions: set[tuple[str, str]] = field(default_factory=set)
    crossings: int = 0
    returns: int = 0
    _stacks: dict[int, list[str]] = field(default_factory=dict)

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Follow a call or a return of any thread: a profile function of Python."""
        name = frame.f_code.co_filename
        if not name.startswith(_PREFIXES):
            return
        stack = self._stacks.setdefault(threading.get_ident(), [])
        if event == "call":
            # no body of a module or class: which are imported already is chance
            if self.is_on and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                self._count(stack, name, frame.f_code.co_qualname)
            stack.append(name)
        elif event == "return" and stack:
            stack.pop()

    def _count(self, stack: list[str], name: str, function: str) -> None:
        self.functions.add((name, function))
        if stack and stack[-1] == name:
            return
        self.crossings += 1
        self.files[name] += 1
        self.returns += name in stack


class _Here(Process):
    """Runs a step in the thread that submits it."""

    def __init__(self) -> None:
        pass

    def submit(self, job: worker.Job) -> Future[worker.Outcome]:
        done: Future[worker.Outcome] = Future()
        done.set_result(worker.attempt(job))
        return done

    def end(self) -> None:
        pass


@contextmanager
def analyst(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve an analyst from a thread; yield its address and a coordinator's key."""
    settings = Settings(data_dir=folder, hidden_protocols="")
    folder.mkdir()
    database = Database(settings.database, settings.database_connections)
    database.migrate()
    database.close()
    app = create_app(settings)
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    service = app.state.service
    with service.database.write() as transaction:
        _, key = AuthService(transaction, service.clock).create_key(
            Role.COORDINATOR, "trace", 3600
        )
    try:
        yield f"http://127.0.0.1:{port}", key
    finally:
        server.should_exit = True
        thread.join()


def run(trace: Trace) -> None:
    """Trace the command of one party, from its start to its labels."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, labels = folder / "rows.csv", folder / "labels.csv"
        table.write_text(
            "a,b\n"
            + "".join(
                f"{i * 37 % 101 / 7:.3f},{i * 53 % 89 / 3:.3f}\n" for i in range(40)
            )
        )
        here = patch.object(Driver, "_new_process", lambda _: _Here())
        with here, analyst(folder / "analyst") as (url, key):
            session = Coordinator(url, key, home=folder / "coordinator").create_session(
                "trace", Dummy(), Layout.lattice(1)
            )
            (invitation,) = session.invite().values()
            words = ["party", "run", invitation, "--data", str(table)]
            words += ["--labels", str(labels), "--home", str(folder / "home")]
            words += ["--accept-risk", "dummy.row-count-is-known"]
            words += ["--accept-risk", "house.open-slot", "--guard", "least_known=0"]
            trace.is_on = True
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                coterie.main(words, standalone_mode=False)
            trace.is_on = False
        if not labels.exists():
            raise SystemExit("the party got no labels")


def main() -> None:
    """Trace one session, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files")
    given = parser.parse_args()
    trace = Trace()
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    run(trace)
    sys.setprofile(None)
    threading.setprofile(None)
    for path, times in trace.files.most_common() if given.files else ():
        print(f"{times:6}  {Path(path).relative_to(ROOT)}")
    print(
        f"{len(trace.files)} files, {len(trace.functions)} functions, "
        f"{trace.crossings} calls that cross a file, {trace.returns} of them returns"
    )


if __name__ == "__main__":
    main()
