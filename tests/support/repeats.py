"""How much a test repeats: a few times on every change, often on command."""

import os
from collections.abc import Sequence
from itertools import cycle, product
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
NIGHTLY = os.environ.get("COTERIE_HYPOTHESIS") == "nightly"
NEVER_RUN = pytest.StashKey[set[str]]()
"""Collected tests of which every case runs only on command."""


def on_command(what: str) -> list[pytest.MarkDecorator]:
    """Return the marks of what is too expensive for every run: others' servers, hours.

    ``what``: what runs, in the plural, for the end of a run that has left it out.
    """
    reason = f"{what} run in make thorough"
    return [pytest.mark.thorough, pytest.mark.skipif(not NIGHTLY, reason=reason)]


def only_in(target: str, what: str) -> list[pytest.MarkDecorator]:
    """Return the marks of what only one target of make runs: ``what``, plural."""
    is_left_out = os.environ.get("COTERIE_TARGET") != target
    reason = f"{what} run in make {target}"
    return [pytest.mark.skipif(is_left_out, reason=reason)]


def thorough(*, ci: int, nightly: int) -> int:
    """Return how often to repeat."""
    return nightly if NIGHTLY else ci


def some(cases: Sequence[T], *, ci: int) -> Sequence[T]:
    """Return the first so many cases; on command all of them."""
    return cases[: thorough(ci=ci, nightly=len(cases))]


def in_turn(cases: Sequence[Any], others: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return each case with one of the others, in turn; on command with each of them."""
    if NIGHTLY:
        return list(product(cases, others))
    return list(zip(cases, cycle(others)))
