"""Commands of the documentation, and terminals that run them as a reader would.

A block ```` ```sh ```` holds commands that have to succeed. A block ```` ```console ````
is a transcript: lines after ``$ `` are commands, others what they print, where ``…``
stands for anything. ``north$ `` is the terminal north. Comments before a block say more:

    <!-- setup            commands that the reader has done already, not shown -->
    <!-- not run: REASON  one of REASONS; its commands are checked for form -->
    <!-- continues          the last command waits for what another terminal does -->
    <!-- ends with 3      the exit code of the last command, where it is not 0 -->
    <!-- answers y        what is typed where the last command asks, as at a terminal -->
    <!-- answers y, continues -->
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from support import answering, warm

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
    *sorted((ROOT / "clustering_protocols" / "protocols").glob("*/README.md")),
]
# What a page may say of a block that no test runs.
REASONS = frozenset(
    {
        "changes the files of a shell",
        "installs packages",
        "makes an environment of its own",
        "needs age, on another machine",
        "needs Docker",
        "needs another machine",
        "needs machines of a cluster",
        "runs every test",
        "serves until it is stopped",
        "takes five minutes",
        "takes half an hour",
    }
)
PYTHON = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SECONDS = 120
_MARK = "--- the command has ended with"
_BLOCK = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->$"
    r"|(?:^<!-- (?P<comment>[^\n]*?) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_PROMPT = re.compile(r"^(?P<terminal>\w*)\$ (?P<command>.*)$")


@dataclass(frozen=True)
class Command:
    """A command, where it is typed, and what it prints: None where nobody says."""

    text: str
    terminal: str = ""
    printed: str | None = None
    goes_on: bool = False
    status: str = "0"
    answers: str = ""

    @property
    def typed(self) -> str:
        """The command as the shell runs it: with answers at a terminal of its own."""
        if not self.answers:
            return f"{self.text}\n"
        words = (sys.executable, answering.__file__, self.answers, self.text)
        return f"{shlex.join(words)}\n"


@dataclass(frozen=True)
class Block:
    commands: tuple[Command, ...]
    reason: str | None = None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of commands of a page."""
    for found in _BLOCK.finditer(page.read_text()):
        comment = found["comment"] or ""
        if found["setup"] is not None:
            yield Block(tuple(_lines(found["setup"])))
        elif found["kind"] in {"sh", "console"}:
            read = _lines if found["kind"] == "sh" else _transcript
            commands = list(read(found["body"]))
            for said in comment.split(", "):
                word, _, value = said.rpartition(" ")
                if said == "continues":
                    commands[-1] = replace(commands[-1], goes_on=True)
                elif word == "ends with":
                    commands[-1] = replace(commands[-1], status=value)
                elif word == "answers":
                    commands[-1] = replace(commands[-1], answers=value)
            reason = comment.removeprefix("not run: ")
            yield Block(tuple(commands), reason if reason != comment else None)


def followed(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.reason is None]


def _lines(body: str) -> Iterator[Command]:
    for line in body.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            prompt = _PROMPT.match(line)
            yield (
                Command(prompt["command"], prompt["terminal"])
                if prompt
                else Command(line)
            )


def _transcript(body: str) -> Iterator[Command]:
    command, terminal, printed = "", "", list[str]()
    for line in body.replace("\\\n", " ").splitlines():
        prompt = _PROMPT.match(line)
        if prompt is None:
            printed.append(line)
            continue
        if command:
            yield Command(command, terminal, "\n".join(printed))
        command, terminal, printed = prompt["command"], prompt["terminal"], []
    yield Command(command, terminal, "\n".join(printed))


def words(command: str) -> list[str]:
    found = shlex.split(command.partition(" #")[0])
    ends = [n for n, word in enumerate(found) if word in {"|", ">", "2>&1", "&", "<"}]
    return found[: ends[0]] if ends else found


def alike(expected: str, printed: str) -> bool:
    """Return whether a text is the expected one, in which … stands for anything.

    A line of … alone stands for any lines, or for none.
    """
    pattern = re.escape(_tidy(expected)).replace("\\\n…\\\n", "\n(?:.*\n)?")
    pattern = pattern.replace("…", ".*")
    return re.fullmatch(pattern, _tidy(printed), re.DOTALL) is not None


def _tidy(text: str) -> str:
    """Return whole lines, each between two ends: the first and the last too."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(["", *lines, ""])


class Terminal:
    """A shell that keeps its variables from command to command."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.waiting: Command | None = None

    def type(self, command: Command) -> None:
        assert self.shell.stdin is not None
        self.shell.stdin.write(
            f"{{ {command.typed}}} </dev/null; printf '\\n{_MARK} %s\\n' $?\n"
        )
        self.shell.stdin.flush()
        self.waiting = command

    def read(self) -> None:
        if self.waiting is None:
            return
        command, self.waiting = self.waiting, None
        watch = threading.Timer(_SECONDS, self.kill)
        watch.start()
        printed, status = self._printed()
        watch.cancel()
        assert status == command.status, (
            f"$ {command.text}\n{printed}\nended with {status}"
        )
        if command.printed is not None:
            assert alike(command.printed, printed), f"$ {command.text}\n{printed}"

    def _printed(self) -> tuple[str, str]:
        assert self.shell.stdout is not None
        lines = []
        for line in self.shell.stdout:
            if line.startswith(_MARK):
                return "".join(lines), line.removeprefix(_MARK).strip()
            if '"logger": "coterie.administration"' not in line:  # no terminal shows it
                lines.append(line)
        return "".join(lines), f"nothing in {_SECONDS} s"

    def kill(self) -> None:
        if self.shell.poll() is None:
            os.killpg(self.shell.pid, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        with self.shell:
            pass


def warm_commands(folder: Path) -> Path:
    """Return a new folder in which `coterie` runs from the stock of imports."""
    folder.mkdir()
    coterie = str(Path(sys.executable).parent / "coterie")
    script = folder / "coterie"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(warm.command(coterie))} "$@"\n')
    script.chmod(0o700)
    return folder


class Reader:
    """Types a page's commands, in as many terminals as it names.

    ``cold``: `coterie` is the program itself; else it runs from the stock of imports.
    """

    def __init__(
        self, folder: Path, said: Mapping[str, str], *, cold: bool = False
    ) -> None:
        places = [str(Path(sys.executable).parent), os.environ["PATH"]]
        if not cold:
            places.insert(0, str(warm_commands(folder / ".bin")))
        path = os.pathsep.join(places)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COTERIE_")
        }
        self.folder = folder
        self.said = said
        self.environment = {**kept, "PATH": path, "HOME": str(folder)}
        self.terminals: dict[str, Terminal] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for terminal in self.terminals.values():
            terminal.close()

    def follow(self, page: Path) -> None:
        """Run all commands of a page from its top to its end."""
        for block in followed(page):
            for command in block.commands:
                self._run(command)
        for terminal in self.terminals.values():
            terminal.read()

    def _here(self, text: str) -> str:
        """Replace addresses and keys of the page by those of this run."""
        for in_page, here in self.said.items():
            text = text.replace(in_page, here)
        return text

    def _run(self, command: Command) -> None:
        if command.terminal not in self.terminals:
            new = Terminal(self.folder, self.environment)
            self.terminals[command.terminal] = new
        terminal = self.terminals[command.terminal]
        terminal.read()
        printed = None if command.printed is None else self._here(command.printed)
        terminal.type(replace(command, text=self._here(command.text), printed=printed))
        if not command.goes_on:
            terminal.read()
