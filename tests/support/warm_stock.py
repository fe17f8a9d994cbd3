"""The stock of imports of :mod:`support.warm`: run as a program."""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from support import warm_child, warm_worker
from support.warm import CONSTANTS, LENGTH, NUMBER

MOST_FILES = 7
OURS = (
    "clustering_protocols",
    "party_sdk",
    "analyst_service",
    "coterie_pages",
    "coterie",
)
THEIRS = (
    "alembic.command",
    "anyio._backends._asyncio",
    "multiprocessing.popen_spawn_posix",
    "psycopg",
    "pyarrow.csv",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


def take_in() -> None:
    """Import all that programs may need; no thread is started by that."""
    gc.disable()
    for name in OURS:
        package = import_module(name)
        for each in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not each.name.endswith("__main__"):
                import_module(each.name)
    for name in THEIRS:
        import_module(name)
    from party_sdk.analyst_client import transport

    transport.default_tls_context()
    gc.collect()
    gc.freeze()  # so that a child's collections copy no page of it
    gc.enable()


@dataclass(frozen=True)
class Request:
    """What a child is to run."""

    line: socket.socket
    files: list[int]
    words: list[str]
    env: dict[str, str]
    cwd: str

    @classmethod
    def receive(cls, line: socket.socket) -> Request | None:
        """Return what was asked; None if anyone who asked was killed meanwhile."""
        files: list[int] = []
        try:
            size, files, _, _ = socket.recv_fds(line, LENGTH.size, MOST_FILES)
            with line.makefile("rb") as content:
                asked = json.loads(content.read(LENGTH.unpack(size)[0]))
        except (OSError, struct.error, ValueError):
            for file in files:
                os.close(file)
            return None
        return cls(line, files, **asked)

    def close(self) -> None:
        for file in self.files:
            os.close(file)

    def become(self) -> int:
        """Run the program as if this process had been started for it; return its code."""
        # out of the way of the numbers that the files are going to have
        away = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 64) for file in self.files]
        self.close()
        for number, file in enumerate(away):
            os.dup2(file, number)
            os.close(file)
        # the streams of the stock believe that they can seek
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
        os.environ.clear()
        os.environ.update(self.env)
        os.chdir(self.cwd)
        for name, value in json.loads(self.env.get(CONSTANTS, "{}")).items():
            module, _, constant = name.rpartition(".")
            setattr(import_module(module), constant, value)
        sys.argv = self.words
        sys.path.insert(0, str(Path(self.words[0]).parent))
        try:
            runpy.run_path(self.words[0], run_name="__main__")
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                return end.code or 0
            sys.stderr.write(f"{end.code}\n")
            return 1
        except BaseException:  # noqa: BLE001  as Python does with whatever comes here
            sys.excepthook(*sys.exc_info())
            return 1
        return 0


def leave(code: int) -> NoReturn:
    """Do what Python does at its end, except free all that was imported."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class Stock:
    """Forks a child for each request, and tells whoever asked how it ended."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.children: dict[int, Request] = {}
        self.selector = selectors.DefaultSelector()
        self.ended, told = os.pipe()
        os.set_blocking(told, False)
        os.set_blocking(self.ended, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(told)
        self.told = told
        for file in (sys.stdin.fileno(), self.ended, listener):
            self.selector.register(file, selectors.EVENT_READ)

    def next(self) -> Request | None:
        """Return a request, in a child of its own; None once nobody is there to ask."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj == sys.stdin.fileno():
                    self._kill(*self.children)
                    return None
                if key.fileobj == self.ended:
                    self._reap()
                elif key.fileobj is self.listener:
                    if request := self._fork():
                        return request
                else:
                    self._forget(key.fileobj)

    def _fork(self) -> Request | None:
        line, _ = self.listener.accept()
        request = Request.receive(line)
        if request is None:
            line.close()
            return None
        pid = os.fork()
        if pid == 0:
            self._leave()
            line.close()
            return request
        request.close()
        self.children[pid] = request
        self.selector.register(line, selectors.EVENT_READ)
        self._tell(line, pid)
        return None

    def _leave(self) -> None:
        """Let go, in a child, of all that is the stock's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.selector.close()
        os.close(self.ended)
        os.close(self.told)
        self.listener.close()
        for child in self.children.values():
            child.line.close()

    def _reap(self) -> None:
        os.read(self.ended, 1 << 10)
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                child = self.children.pop(found[0])
                line = child.line
                if line.fileno() >= 0:
                    self._tell(line, os.waitstatus_to_exitcode(found[1]))
                    self.selector.unregister(line)
                    line.close()

    def _forget(self, line: Any) -> None:
        """Kill the child of somebody who has gone away."""
        self.selector.unregister(line)
        self._kill(*(pid for pid, its in self.children.items() if its.line is line))
        line.close()

    def _kill(self, *children: int) -> None:
        for pid in children:
            os.kill(pid, signal.SIGKILL)

    def _tell(self, line: socket.socket, number: int) -> None:
        with suppress(OSError):
            line.sendall(NUMBER.pack(number))


def main() -> None:
    del sys.path[0]  # a program has its own folder there
    listener = socket.socket(fileno=int(sys.argv[1]))
    take_in()
    warm_child.install()
    warm_worker.install()
    request = Stock(listener).next()
    if request is not None and warm_child.COLD_READERS not in request.env:
        warm_child.install_readers()
    leave(request.become() if request else 0)


if __name__ == "__main__":
    main()
