"""One model for each thing that is shown, found by its fields, whatever it is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.product import trees

THINGS = {
    "a seat": ({"slot", "name", "known", "fingerprint"}, "Seat"),
    "an array that leaves": ({"name", "shape", "dtype", "n_bytes"}, "ArrayFacts"),
    "an envelope that leaves": ({"receiver", "kind", "n_bytes"}, "EnvelopeFacts"),
    "what leaves": (
        {"stage", "round", "arrays", "envelopes", "notes"},
        "Inspection",
    ),
    "rehearsed rounds": ({"first", "last", "n", "n_bytes"}, "RehearsedRound"),
    "a run line": ({"n_clusters", "figures", "chosen"}, "RunLine"),
}


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    """Each class of the product, with its file."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield path, node


def fields(node: ast.ClassDef) -> set[str]:
    """The names that a class annotates."""
    return {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


@pytest.mark.parametrize("thing", THINGS)
def test_a_thing_that_is_shown_has_one_model(thing: str) -> None:
    said, name = THINGS[thing]
    found = [
        f"{path.name}:{node.name}"
        for path, node in classes()
        # a class of many more fields is another thing, of which these are a part
        if said <= fields(node) and len(fields(node)) <= 3 * len(said)
    ]
    assert [each.partition(":")[2] for each in found] == [name], found


def test_no_copy_remains_under_another_word() -> None:
    """A range has two words in no two classes: what was renamed on the way is gone."""
    ranges = [
        node.name
        for _, node in classes()
        if {"shape", "dtype"} <= fields(node)
        and ({"low", "high"} <= fields(node) or {"minimum", "maximum"} <= fields(node))
    ]
    assert ranges == ["ArrayFacts"]
