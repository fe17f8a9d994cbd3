"""How data are split is asked in words, and gives each party its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.browsing import texts
from support.desks import DeskBrowser

from party_sdk.desk.coordinator.draft_fields import page_of
from party_sdk.desk.coordinator.drafts import Draft
from party_sdk.desk.responses import Form
from party_sdk.home.identities import Acquaintances

NAMES = ["north", "south", "west"]


@pytest.mark.parametrize(
    ("split", "places"),
    [
        ("patients", [("1", "1"), ("2", "1"), ("3", "1")]),
        ("variables", [("1", "1"), ("1", "2"), ("1", "3")]),
        ("both", [("1", "1"), ("1", "2"), ("2", "1")]),
        ("", [("1", "1"), ("1", "2"), ("2", "1")]),
    ],
)
def test_the_split_gives_each_party_its_place(
    tmp_path: Path, split: str, places: list[tuple[str, str]]
) -> None:
    fields = {
        "split": [split],
        "slot.name": NAMES,
        "slot.title": ["", "", ""],
        "slot.row": ["1", "1", "2"],
        "slot.column": ["1", "2", "1"],
        "slot.expected": ["", "", ""],
    }
    draft = Draft(Form(fields), tmp_path)
    assert [(each.row, each.column) for each in draft.places()] == places
    shown = page_of(draft, Acquaintances(tmp_path))
    assert shown.split.value == (split or "both")


def test_parameters_are_folded_by_what_they_are_about(desk: DeskBrowser) -> None:
    page = texts(desk.get("/sessions/-/new?protocol=llf"))
    assert re.search(r"Starts and stopping: \d+ parameters, none changed", page)
    assert re.search(r"Linking rows: \d+ parameters, none changed", page)
    assert "Same patients" in page
    assert "Same variables" in page
