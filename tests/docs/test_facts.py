"""No code decides by what a sentence says: facts have fields of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from support.product import ROOT, trees

# Attributes that hold sentences for people.
SENTENCES = {"detail", "remedy", "said", "stopped"}
READERS = {
    "endswith",
    "find",
    "index",
    "partition",
    "removeprefix",
    "removesuffix",
    "rpartition",
    "split",
    "startswith",
}
ALLOWED = {
    "party_sdk/analyst_client/connections.py": 1,  # another library's, which has no field
    "party_sdk/tables/duck.py": 1,  # another library's, which has no field
}


def is_sentence(node: ast.expr) -> bool:
    """Whether an expression is a text for people: of an error, or of a journal."""
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "str"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in {"error", "refusal", "problem"}
    )


def matches(tree: ast.AST) -> Iterator[int]:
    """The lines on which a sentence is taken apart or compared."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in READERS
            and is_sentence(node.func.value)
        ):
            yield node.lineno
        if isinstance(node, ast.Compare):
            texts = [node.left, *node.comparators]
            told = any(map(is_sentence, texts))
            literal = any(isinstance(t, ast.Constant) and t.value for t in texts)
            if told and literal:
                yield node.lineno


def test_the_rule_finds_what_it_is_for() -> None:
    found = [
        'error.detail.partition(": ")',
        '"no such" in error.detail',
        'str(error).startswith("The")',
        'journal.stopped == "You left"',
    ]
    assert all(list(matches(ast.parse(text))) for text in found)
    assert not list(matches(ast.parse('error.field in {"a"}; print(error.detail)')))


def test_no_code_matches_on_the_text_of_a_message() -> None:
    found = {
        str(path.relative_to(ROOT)): len(lines)
        for path, tree in trees().items()
        if (lines := list(matches(tree)))
    }
    assert found == ALLOWED
