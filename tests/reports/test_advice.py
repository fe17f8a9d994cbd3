"""Advice for three parties with other columns of numbers: the way out that is named."""

from __future__ import annotations

from support.verdicts import BROKEN, Verdict, check, right

from tests.reports.conftest import Command

WAY_OUT: Verdict = BROKEN
"""Whether the answers about trust are named, and no method for counts, twice."""


def test_the_way_out_is_about_trust(command: Command) -> None:
    answers = {
        "--partitioning": "vertical",
        "--parties": "3",
        "--overlap": "partial",
        "--data": "numeric",
    }
    said = command(
        "advise", *(word for pair in answers.items() for word in pair)
    ).output
    assert "No protocol fits all of this" in said
    first = said.splitlines()[1]
    check(right("fccm" not in first and "--analyst-sees" in first), WAY_OUT)
