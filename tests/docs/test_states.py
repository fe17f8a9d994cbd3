"""States have one vocabulary: no product code spells one out."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.product import nodes

from clustering_protocols.wire.states import SessionState, SlotState

ROOT = Path(__file__).parents[2]
PACKAGES = ("analyst_service", "clustering_protocols", "party_sdk")
VOCABULARY = ROOT / "clustering_protocols" / "wire" / "states.py"
STATES = {state.value for state in (*SessionState, *SlotState)}
# words that are something else there
OTHERS = {
    ("clustering_protocols/common/error_catalogue.py", "cancelled"),  # a problem
}


def spelled_out(code: Iterable[ast.AST]) -> set[str]:
    """The states that are string literals in some code."""
    literals = [node.value for node in code if isinstance(node, ast.Constant)]
    return STATES.intersection(filter(STATES.__contains__, literals))


def test_no_product_code_spells_a_state_out() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), state)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path != VOCABULARY
        for state in spelled_out(nodes(path))
    }
    assert found == OTHERS


@pytest.mark.parametrize(
    "source",
    [
        "status.state == 'completed'",
        "states = {'failed': 1}",
        "match state:\n    case 'collecting':\n        pass",
    ],
)
def test_a_state_that_is_spelled_out_would_be_found(source: str) -> None:
    assert len(spelled_out(ast.walk(ast.parse(source)))) == 1


def test_the_vocabulary_is_the_only_place_that_is_left_out() -> None:
    assert spelled_out(nodes(VOCABULARY)) == STATES
