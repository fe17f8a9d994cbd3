"""Where something stands, in a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest

from party_sdk.cli.terminal.progress import StatusLine


class Screen(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


def shown(
    monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, columns: str = "60"
) -> str:
    screen = Screen(is_terminal=is_terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", columns)
    line = StatusLine()
    line.show("joining")
    line.show("round 3 of the updates, waiting for north", part=0.5)
    line.clear()
    line.show("completed", stays=True)
    return screen.getvalue()


def test_a_terminal_has_one_line_and_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(monkeypatch, is_terminal=True)
    assert said.count("\n") == 1
    assert "[######......]" in said
    assert said.endswith("\r\x1b[Kcompleted\n")


def test_a_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(monkeypatch, is_terminal=True, columns="30")
    longest = max(len(part) for part in said.split("\r\x1b[K"))
    assert longest <= 30 + len("\x1b[36m\x1b[0m")
    assert "…" in said


def test_elsewhere_each_line_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(monkeypatch, is_terminal=False)
    assert said.splitlines() == [
        "joining",
        "round 3 of the updates, waiting for north",
        "completed",
    ]
