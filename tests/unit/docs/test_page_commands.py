"""Commands and Python that README and docs show have the right form."""

import ast
import re
import shlex
import textwrap
from configparser import ConfigParser
from pathlib import Path

import click
import pytest

from party_sdk.cli import main
from tests.unit.docs.pages import PAGES, PYTHON, REASONS, ROOT, blocks, words

every_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES]
)
_INLINE = re.compile(r"(?<!`)`((?:coterie|make|python -m) [^`\n]+)`(?!`)")
_TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_four_commands_lead_to_labels() -> None:
    """As printed on a page that a test follows: the tables are there, or made before."""
    text = (ROOT / "docs" / "start.md").read_text()
    shown = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    prompts = re.findall(r"^\w*\$ ((?:.*\\\n)*.*)$", shown, re.MULTILINE)
    typed = [each for each in prompts if not each.startswith("coterie example")]
    [last] = [n for n, each in enumerate(typed, 1) if "run south.invitation" in each]
    assert last <= 4


@every_page
def test_what_is_not_run_has_a_reason_and_the_right_form(page: Path) -> None:
    for block in blocks(page):
        if block.reason is None:
            continue
        assert block.reason in REASONS
        for command in block.commands:
            check_form(command.text)


@every_page
def test_commands_in_the_text_have_the_right_form(page: Path) -> None:
    for found in _INLINE.findall(page.read_text()):
        check_form(found)


@every_page
def test_no_command_stands_outside_a_block(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^<!-- setup.*?^-->$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^ {4,}(?:coterie|make|pip|docker) .*", text, re.MULTILINE)


@every_page
def test_python_has_the_right_form(page: Path) -> None:
    for code in PYTHON.findall(page.read_text()):
        tree = ast.parse(textwrap.dedent(code))
        imports = [
            each
            for each in tree.body
            if isinstance(each, ast.Import)
            or (isinstance(each, ast.ImportFrom) and not each.level)
        ]
        exec(compile(ast.Module(imports, []), str(page), "exec"), {})


def check_form(text: str) -> None:
    found = words(text)
    if found[0] == "make":
        assert set(found[1:]) <= _TARGETS, text
    if found[:2] == ["python", "-m"]:
        place = found[2].replace(".", "/")
        module = ROOT / f"{place}.py"
        if not module.exists():
            module = ROOT / place / "__main__.py"
        assert module.exists(), text
        given = {word for word in found[3:] if word.startswith("--")}
        assert all(f'"{option}"' in module.read_text() for option in given), text
    if found[0] != "coterie":
        return
    command: click.Command = main
    rest = found[1:]
    while rest and isinstance(command, click.Group):
        if rest[0].startswith("-") or rest[0] == "…":
            break
        names = rest.pop(0).split("|")
        context = click.Context(command)
        found_commands = [command.get_command(context, name) for name in names]
        assert all(found_commands), text
        command = found_commands[0] or command
    known = {"--help"} | {opt for parameter in command.params for opt in parameter.opts}
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert given <= known, f"{text}: {given - known}"


def test_the_unit_of_systemd_names_a_command_that_there_is() -> None:
    [text] = re.findall(
        r"^```ini\n(.*?)^```$",
        (ROOT / "docs/party.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    unit = ConfigParser(interpolation=None)
    unit.read_string(text)
    program, *rest = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/bin/coterie")
    check_form(shlex.join(["coterie", *rest]))
