"""Lets a supervisor in a test, or from the stock, take its processes from the stock.

So may the analyst of a local session, and what reads a table for a test.

A supervisor in a new Python (:class:`support.standing.SupervisorProcess`) makes its
processes as it does for everybody.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from party_sdk import cli
from party_sdk.lab import local_sessions
from party_sdk.supervisor import order_runner as child, supervisor
from party_sdk.tables import unpacking
from support.warm import Warm, command, stock


class Process(Warm):
    """Stands in for ``subprocess.Popen`` of an order's process, for the supervisor."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        env: Mapping[str, str],
        start_new_session: bool,
    ) -> None:
        program, given = words[:4], words[4:]
        assert program[1:] == ["-P", "-m", child.__name__]
        assert (stdin, stdout) == (subprocess.PIPE, subprocess.DEVNULL)
        assert start_new_session  # the stock is in no terminal's group either
        stock()
        theirs, ours = os.pipe()
        self.stdin = os.fdopen(ours, "wb")
        with os.fdopen(theirs, "rb"), Path(os.devnull).open("wb") as nothing:
            files = [theirs, nothing.fileno(), 2]
            super().__init__([str(child.__file__), *given], files, env=env)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Reader(Warm):
    """Stands in for ``subprocess.Popen`` of a table's reader.

    It has all imports already, which its limit of memory counts: a test of that limit
    starts readers as everybody does (``cold_readers``).
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        env: Mapping[str, str],
    ) -> None:
        assert tuple(words[1:4]) == unpacking.READER
        assert (stdin, stdout, stderr) == (subprocess.PIPE, *[subprocess.DEVNULL] * 2)
        stock()
        theirs, self._ours = os.pipe()
        with os.fdopen(theirs, "rb"), Path(os.devnull).open("wb") as nothing:
            files = [theirs, *[nothing.fileno()] * 2]
            super().__init__([str(unpacking.__file__), words[4]], files, env=env)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ours)
        self.wait()

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


COLD_READERS = "TEST_COLD_READERS"
"""The variable with which a program of the stock starts readers as everybody does."""


def install_readers() -> None:
    """Let tables that this process opens be read from the stock."""
    names = {**vars(subprocess), "Popen": Reader}
    unpacking.subprocess = SimpleNamespace(**names)  # type: ignore[assignment]  # as much of the module as is used


def start_readers_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be read as everybody's, also by programs that this process starts."""
    monkeypatch.setattr(unpacking, "subprocess", subprocess)
    monkeypatch.setenv(COLD_READERS, "1")


def install() -> None:
    """Let supervisors of this process take their processes from the stock."""
    names = {**vars(subprocess), "Popen": Process}
    supervisor.subprocess = SimpleNamespace(**names)  # type: ignore[assignment]  # as much of the module as is used


@contextmanager
def warm_children() -> Iterator[None]:
    """Let supervisors take their processes from the stock meanwhile."""
    before = supervisor.subprocess
    install()
    try:
        yield
    finally:
        supervisor.subprocess = before


def start_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let local sessions start their analyst without the start of Python."""
    program = Path(cli.__file__).with_name("own_analyst.py")
    monkeypatch.setattr(local_sessions, "PROGRAM", command(str(program)))
