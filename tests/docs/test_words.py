"""Sentences get shorter, and say the terms of the field: the counts may only fall."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest
from support.product import ROOT, trees

from clustering_protocols import catalogue
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.terms import session_risks
from party_sdk.cli import main
from tests.docs.pages import PAGES

RULES = tomllib.loads(Path(__file__).with_name("words.toml").read_text())
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z'\"`*\[(])")
PARAGRAPH = re.compile(r"\n\s*\n|\n *(?:-|\d+\.) ")
TAGS = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
MARKUP = re.compile(r"<[^>]*>")
NO_PROSE = re.compile(r"^ *```.*?^ *```|^\|.*?$|<!--.*?-->", re.MULTILINE | re.DOTALL)


def risks() -> Iterator[str]:
    """The sentences of all risks."""
    for risk in session_risks.RISKS.values():
        yield from risk.texts
    for known in catalogue.catalogue().values():
        for risk in known.risks.values():
            yield from risk.texts


def problems() -> Iterator[str]:
    """What all problems say."""
    for problem in Problem:
        yield from (problem.title, problem.remedy)


def helps(command: click.Command | None = None) -> Iterator[str]:
    """What all commands and their options say of themselves."""
    command = command or main
    yield from filter(None, [command.help, *map(_help, command.params)])
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from helps(command.get_command(context, name))


def _help(parameter: click.Parameter) -> str | None:
    return parameter.help if isinstance(parameter, click.Option) else None


def pages() -> Iterator[str]:
    """Paragraphs and items of lists of all pages, without code and tables."""
    for page in PAGES:
        yield from PARAGRAPH.split(NO_PROSE.sub("", page.read_text()))


def errors() -> Iterator[str]:
    """What errors of the product say, and their remedies; values count as one word."""
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func)[:1].isupper():
                remedies = [k.value for k in node.keywords if k.arg == "remedy"]
                yield from map(_text, [*node.args, *remedies])


def _name(called: ast.expr) -> str:
    return getattr(called, "id", "") or getattr(called, "attr", "")


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "value" for part in node.values)
    return ""


def templates() -> Iterator[str]:
    """What stands on pages, without what a template fills in."""
    for path in sorted((ROOT / "coterie_pages" / "templates").rglob("*.j2")):
        yield MARKUP.sub(" ", TAGS.sub(" ", path.read_text()))


TEXTS = {
    "risks": risks,
    "problems": problems,
    "help": helps,
    "errors": errors,
    "pages": pages,
}
SHOWN = TEXTS | {"templates": templates}


def sentences(text: str) -> list[str]:
    """A text in sentences."""
    return SENTENCE.split(" ".join(text.split()))


def is_long(sentence: str) -> bool:
    """Whether a sentence has more words than a reader takes in at once."""
    return len(re.findall(r"[\w'-]+", sentence)) > RULES["most_words"]


def test_sentences_are_counted() -> None:
    assert sentences("One. Two, 3.5 of `x`. *Three*?") == [
        "One.",
        "Two, 3.5 of `x`.",
        "*Three*?",
    ]
    assert is_long("word " * 26)
    assert not is_long("word " * 25)


@pytest.mark.parametrize("where", TEXTS)
def test_sentences_become_shorter(where: str) -> None:
    found = [s for text in TEXTS[where]() for s in sentences(text) if is_long(s)]
    assert len(found) == RULES["long_sentences"][where], (
        f"{len(found)} sentences are long now: shorten what you wrote, and write a "
        f"smaller number down in words.toml: {found[:3]}"
    )


def test_words_of_our_own_become_fewer() -> None:
    instead: Mapping[str, str] = RULES["instead"]
    texts = [" ".join(text.split()) for each in TEXTS.values() for text in each()]
    found = {
        word: sum(len(re.findall(rf"\b{word}\b", text)) for text in texts)
        for word in instead
    }
    assert sum(found.values()) == RULES["not_the_fields"]["all"], found


def test_plain_words_that_hide_a_term_become_fewer() -> None:
    texts = [" ".join(text.split()) for each in SHOWN.values() for text in each()]
    found = {
        word: sum(len(re.findall(rule["pattern"], text)) for text in texts)
        for word, rule in RULES["plain"].items()
    }
    more = {w: n for w, n in found.items() if n > RULES["plain"][w]["most"]}
    assert not more, "say the term that words.toml names beside each"


def test_docstrings_say_name_and_text() -> None:
    """Types stand in annotations; estimators keep the form of scikit-learn."""
    underlined = re.compile(r"^(?:[A-Z][a-z ]+)\n-{3,}$", re.MULTILINE)
    found = {
        f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}"
        for path, tree in trees().items()
        if "estimators" not in path.parts
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and underlined.search(ast.get_docstring(node) or "")
    }
    assert not found
