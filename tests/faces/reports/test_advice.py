"""Advice for three parties with other columns of numbers: the way out that is named."""

from __future__ import annotations

from support.verdicts import RIGHT, Verdict, check, right

from tests.faces.reports.conftest import Command

WAY_OUT: Verdict = RIGHT
"""Whether the answers about trust are named, and no method for counts, twice."""


def test_the_way_out_is_about_trust(command: Command) -> None:
    answers = {
        "--partitioning": "vertical",
        "--parties": "3",
        "--data": "numeric",
    }
    said = command(
        "advise", *(word for pair in answers.items() for word in pair)
    ).output
    assert "No method fits all of this" in said
    first = said.splitlines()[1]
    check(right("fccm" not in first and "--distances yes" in first), WAY_OUT)
