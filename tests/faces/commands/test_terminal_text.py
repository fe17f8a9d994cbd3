"""Texts of others reach no terminal as something that it obeys."""

import ast
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import TypeAdapter, ValidationError

from clustering_protocols.common.errors import Malformed, ProtocolFailed
from clustering_protocols.session_terms import draw_up_terms
from clustering_protocols.terms.terms import (
    CONTROLS,
    About,
    Layout,
    SessionRequest,
    Text,
    read_terms,
)
from clustering_protocols.wire.answers import SessionStatus
from party_sdk.cli.terminal.output import RootGroup, progress_line, report_lines, say
from party_sdk.cli.terminal.progress import StatusLine

CLI = Path(__file__).parents[3] / "party_sdk" / "cli"
OBEYED = {
    "hidden text": "\x1b[8m",
    "one byte's escape": "\x9b8m",
    "turned direction": "\u202e",
    "turned and kept": "\u2066",
    "a mark": "\u200f",
    "another line": "\n",
    "the line again": "\r",
    "an end of line": "\u2028",
    "NUL": "\0",
    "a bell": "\a",
    "DEL": "\x7f",
}
HARMLESS = ["Wards of 2030", "Müller & Søn", "病院", "مستشفى", "👩\u200d⚕️", "a\u200cb"]


@pytest.mark.parametrize("what", OBEYED)
def test_a_title_with_control_characters_is_always_refused(what: str) -> None:
    title = f"Wards{OBEYED[what]}of 2030"
    with pytest.raises(ValidationError):
        TypeAdapter(Text).validate_python(title)
    proposal = SessionRequest(
        about=About(title="here"),
        protocol={"name": "dummy", "params": {}},
        layout=Layout.lattice(1),
        seed=0,
    )
    terms = draw_up_terms("s", proposal).decode()
    forged = terms.replace('"title":"here"', f'"title":{_as_json(title)}')
    assert forged != terms
    with pytest.raises(Malformed):
        read_terms(forged.encode())


def _as_json(text: str) -> str:
    return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'


@pytest.mark.parametrize("title", HARMLESS)
def test_a_title_in_any_script_is_taken_and_said_as_it_is(
    title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert TypeAdapter(Text).validate_python(title) == title
    say(title, err=True)
    assert capsys.readouterr().err == f"{title}\n"


@pytest.mark.parametrize("what", OBEYED)
def test_what_is_said_is_one_line_without_controls(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say(f"before{OBEYED[what]}after")
    said = capsys.readouterr().out
    assert said.endswith("after\n")
    assert re.search(f"[{CONTROLS}]", said.removesuffix("\n")) is None
    assert f"\\u{ord(OBEYED[what][0]):04x}" in said


def test_the_detail_of_a_problem_hides_nothing_that_follows_it() -> None:
    group = RootGroup("coterie")

    @group.command()
    def fail() -> None:
        raise ProtocolFailed("rows \x1b[8m\u202eare bad")

    group.get_command = lambda *_: fail  # type: ignore[method-assign]  # its own
    done = CliRunner().invoke(group, ["fail"])
    assert done.exit_code == 4
    assert "rows \\u001b[8m\\u202eare bad" in done.stderr
    assert "What to do: " in done.stderr


@pytest.mark.parametrize(
    "module", ["party/commands.py", "session/commands.py", "terminal/output.py"]
)
def test_commands_print_foreign_text_through_one_function(module: str) -> None:
    tree = ast.parse((CLI / module).read_text())
    echoes = [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name != "say"
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"click.echo", "print"}
    ]
    assert echoes == []


# Where something stands


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
    line.show("round 3 of the updates, waiting for north")
    line.clear()
    line.show("completed", stays=True)
    return screen.getvalue()


def test_a_terminal_has_one_line_that_never_wraps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = shown(monkeypatch, is_terminal=True, columns="30")
    assert said.count("\n") == 1
    assert said.endswith("\r\x1b[Kcompleted\n")
    assert max(len(part) for part in said.split("\r\x1b[K")) <= 30
    assert "…" in said


def test_elsewhere_each_line_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(monkeypatch, is_terminal=False)
    assert said.splitlines() == [
        "joining",
        "round 3 of the updates, waiting for north",
        "completed",
    ]


def test_a_line_says_why_nothing_goes_on() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    status = SessionStatus(
        id="s",
        title="",
        protocol="dc",
        state="stepping",
        progress={},
        slots=[],
        risks=[],
        terms_digest="",
        **dict.fromkeys(("reason", "detail", "stage", "safety_number")),
        **dict.fromkeys(("round", "attempt", "stage_index", "n_stages"), 0),
        **dict.fromkeys(("created_at", "waiting_since", "deadline"), now),
    )
    assert "no room" not in progress_line(status)
    full = status.model_copy(update={"short_of_room": True})
    assert "The analyst has no room left" in progress_line(full)
    end = {"state": "failed", "reason": "rows-not-aligned", "detail": "Compare a, b."}
    failed = progress_line(status.model_copy(update=end))
    assert "Compare the ids" in failed
    assert "Compare a, b." in failed
    assert "Clusters coincide: 2" in "".join(report_lines({"n_coinciding": 2}))
    assert not list(report_lines({"n_coinciding": 0}))
