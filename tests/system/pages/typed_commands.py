"""People who type commands into terminals of their own, and answer what they are asked."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.analyst_process import COTERIE

Answer = Callable[[str], str]
"""What somebody types, by the lines that stand above the prompt."""

_SECONDS: Final = 120
_PROMPT: Final = re.compile(r"(?:\[[^]\n]+\]|\)): $")


def agree(asked: str) -> str:
    """Say yes."""
    del asked
    return "y"


def take_default(_: str) -> str:
    """Press the return key."""
    return ""


class OpenCommand:
    """A command at a terminal of its own, which waits for answers, or ends.

    questions: the lines to which somebody answered.
    """

    def __init__(
        self, line: str, folder: Path, environment: dict[str, str], answer: Answer
    ) -> None:
        self.printed = ""
        self.questions: list[str] = []
        self._answer, self._answered = answer, 0
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self._process = subprocess.Popen(
            [COTERIE, *shlex.split(line)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment,
        )
        os.close(theirs)

    def proceed(self) -> bool:
        """Read what is there, answer what is asked, and say whether it still runs."""
        runs = self._process.poll() is None
        with suppress(OSError):  # nothing for now, or nothing more
            while read := os.read(self._ours, 65_536):
                self.printed += read.decode(errors="replace").replace("\r", "")
        asked = self.printed[self._answered :]
        if runs and _PROMPT.search(asked):
            self.questions.append(asked.rpartition("\n")[2])
            self._answered = len(self.printed)
            os.write(self._ours, f"{self._answer(asked)}\n".encode())
        return runs

    def end(self) -> str:
        """Wait for success; return all that was printed."""
        until = time.monotonic() + _SECONDS
        while self.proceed():
            assert time.monotonic() < until, self.printed[-2_000:]
            time.sleep(0.01)
        assert self._process.returncode == 0, self.printed[-2_000:]
        return self.printed

    def close(self) -> None:
        """Kill what still runs."""
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


@dataclass
class Person:
    """Somebody with a folder, a home in it, and a keyboard.

    commands: what was typed.
    questions: what was asked, and answered.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    commands: list[OpenCommand] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.environment = {
            **os.environ,
            "COTERIE_HOME": str(self.folder / "home"),
            **self.environment,
        }

    @property
    def questions(self) -> int:
        """How often this person was asked."""
        return sum(len(each.questions) for each in self.commands)

    @property
    def effort(self) -> int:
        """Commands that were typed, and questions that were answered."""
        return len(self.commands) + self.questions

    def types(self, line: str, answer: Answer = agree) -> OpenCommand:
        """Type a command, and let it run."""
        command = OpenCommand(line, self.folder, self.environment, answer)
        self.commands.append(command)
        return command

    def waits(self, line: str, answer: Answer = agree) -> str:
        """Type a command, and read what it has printed at its end."""
        return self.types(line, answer).end()

    def close(self) -> None:
        """Kill what still runs."""
        for command in self.commands:
            command.close()
