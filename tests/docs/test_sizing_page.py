"""docs/sizing.md is what the program writes, from figures that were measured."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks import sizing, sizing_page
from clustering_protocols import catalogue
from clustering_protocols.contract.sizing import Needs
from party_sdk.advice.sizing import load_measurements

PAGE = sizing.PAGE.read_text()


def test_the_page_is_what_the_program_writes() -> None:
    assert sizing_page.render(json.loads(sizing.MEASURED.read_text())) == PAGE


def test_every_protocol_that_is_advised_has_its_tables() -> None:
    shown = {way.protocol for way in sizing_page.WAYS}
    assert shown == {
        name for name, known in catalogue.catalogue().items() if known.methods
    }


def test_every_measured_case_stays_below_the_stated_memory() -> None:
    for case in sizing.CASES:
        found = load_measurements()["speeds"][case.protocol][sizing.name_of(case)]
        assert found["rows"] == case.rows
        assert found["analyst"] > 0
        assert found["party"] > 0
        assert not sizing.above(found)


def test_more_memory_than_is_stated_is_noticed() -> None:
    took = {"analyst": 0, "analyst_stated": 0, "party_stated": 0}
    assert not sizing.above({"memory": {**took, "party": sizing.FIXED}})
    assert sizing.above({"memory": {**took, "party": sizing.FIXED + 1}})


@pytest.mark.parametrize("way", sizing_page.WAYS, ids=lambda way: f"{way[0]} {way[1]}")
def test_a_table_has_a_time_for_every_size(way: sizing_page.Way) -> None:
    begin = PAGE.index(f"## `{way.protocol}`")
    table = PAGE[PAGE.index(f"**{way.title[0].upper()}{way.title[1:]}**", begin) :]
    lines = table.split("\n\n")[1].splitlines()[2:]
    assert len(lines) == len(sizing_page.ROWS)
    for line in lines:
        took = r"\| (?:under 1 s|[\d,]+ (?:s|minutes?|hours|days)) "
        assert re.search(rf"{took}{took}\|$", line)


def test_workers_shorten_only_the_work_done_in_blocks() -> None:
    needs = Needs(
        **dict.fromkeys(("rounds", "sent", "kept"), 0),
        analyst_memory=0,
        party_memory=0,
        measured_as="",
        analyst_work=100.0,
        party_work=100.0,
    )
    speed = {"analyst": 1.0, "party": 2.0, "seconds_of_a_round": 0.0, "in_blocks": 0.8}
    found = 60 * sizing_page.minutes_with_workers(needs, speed)
    assert found == pytest.approx(20 + 80 / 4 + 50)
    little = {**speed, "in_blocks": 0.004}
    assert 60 * sizing_page.minutes_with_workers(needs, little) == pytest.approx(150)


def test_the_page_names_no_machine_and_no_folder() -> None:
    assert not re.search(r"/(?:home|root|tmp|work|Users)/|\.py:\d", PAGE)
    assert not re.search(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", PAGE)
