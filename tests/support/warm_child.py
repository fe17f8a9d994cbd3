"""The processes of a supervisor that runs from the stock, or in a test, come from there.

So may the analyst of a local session.

One that Python starts for (:class:`support.standing.Served`) makes them as it does for
everybody.
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
from party_sdk.lab import local_analyst
from party_sdk.supervisor import child, scheduler
from support.warm import Warm, command, stock


class Process(Warm):
    """As ``subprocess.Popen`` of an order's process, for the supervisor."""

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


def install() -> None:
    """Let supervisors of this process make their processes so."""
    names = {**vars(subprocess), "Popen": Process}
    scheduler.subprocess = SimpleNamespace(**names)  # type: ignore[assignment]  # as much of the module as is used


@contextmanager
def warm_children() -> Iterator[None]:
    """The same for a while."""
    before = scheduler.subprocess
    install()
    try:
        yield
    finally:
        scheduler.subprocess = before


def start_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let local sessions start their analyst without the start of Python."""
    program = Path(cli.__file__).with_name("own_analyst.py")
    monkeypatch.setattr(local_analyst, "PROGRAM", command(str(program)))
