"""What is said of the size of a session before it opens."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from clustering_protocols import catalogue
from clustering_protocols.contract.sizing import Extent, Needs
from clustering_protocols.terms.terms import Layout
from party_sdk.advice import sizing
from party_sdk.advice.advice import Situation, advise
from party_sdk.cli import main

ACROSS = Layout.lattice(4)


def said(protocol: str, rows: int, layout: Layout = ACROSS, **values: object) -> str:
    params = catalogue.parse_params(protocol, {"n_clusters": 5, **values})
    extent = Extent(rows=rows, features=16, layout=layout)
    sentences = [sizing.end(params, extent), *sizing.warnings(params, extent)]
    return " ".join(filter(None, sentences))


@pytest.mark.parametrize("rows", [100, 2_000])
@pytest.mark.parametrize("partitioning", ["horizontal", "vertical", "mixed"])
def test_nothing_is_said_of_small_sessions(partitioning: str, rows: int) -> None:
    found = advise(
        Situation(partitioning=partitioning, parties=5, rows=rows)  # type: ignore[arg-type]  # parametrised
    )
    assert found.fits
    assert [fit.large for fit in found.fits] == [[]] * len(found.fits)


def test_an_unknown_number_of_rows_gives_no_size_warning() -> None:
    found = advise(Situation(partitioning="horizontal", parties=5))
    assert all(fit.large == [] for fit in found.fits)


def test_a_protocol_that_ends_below_says_where_and_what_helps() -> None:
    text = said("omnifc", 10_001)
    assert "omnifc ends at 10,000 rows" in text
    assert "landmarks" in text
    assert said("omnifc", 10_000) == ""
    assert said("omnifc", 200_000, distances="landmarks", max_rows=200_000) == ""
    high = said("omnifc", 200_000, max_rows=200_000, memory_limit=1 << 40)
    assert "of files at the analyst" in high
    assert "A party sends up to 160 GB." in high


def test_large_files_messages_memory_and_time_are_reported() -> None:
    beside = Layout.lattice(1, 4)
    text = said("fccm", 1_000_000, beside)
    for part in ("of files at the analyst", "A party sends", "of memory", "computes"):
        assert part in text
    assert said("llf", 10_000, beside) == ""


def test_a_protocol_that_says_nothing_is_not_warned_of() -> None:
    params = catalogue.parse_params("dummy", {})
    assert sizing.warnings(params, Extent(rows=10**9, features=9, layout=ACROSS)) == []


def test_minutes_are_work_by_measured_speed_or_none() -> None:
    needs = Needs(
        rounds=10,
        sent=0,
        kept=0,
        analyst_memory=0,
        party_memory=0,
        analyst_work=600.0,
        party_work=900.0,
    )
    speed = {"analyst": 10.0, "party": 30.0, "seconds_of_a_round": 3.0}
    assert sizing.minutes_at(needs, speed) == 2.0
    params = catalogue.parse_params("dummy", {})
    assert sizing.minutes(params, needs) is None


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (12_345, "12 kB"),
        (4.2e9, "4.2 GB"),
        (1.6e15, "1,600 TB"),
    ],
)
def test_bytes_for_people(n_bytes: float, text: str) -> None:
    assert sizing.size(n_bytes) == text


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (0.001, "under 1 s"),
        (0.5, "30 s"),
        (40, "40 minutes"),
        (300, "5 hours"),
        (60 * 24 * 3, "3 days"),
    ],
)
def test_minutes_for_people(minutes: float, text: str) -> None:
    assert sizing.duration(minutes) == text


def test_advise_prints_it() -> None:
    words = ["advise", "--partitioning", "horizontal", "--parties", "4", "--json"]
    large = CliRunner().invoke(main, [*words, "--rows", "50000"])
    said = json.loads(large.output)
    assert "omnifc" not in {fit["protocol"] for fit in said["fits"]}
    words.remove("--json")
    printed = CliRunner().invoke(main, [*words, "--rows", "50000"]).output
    assert "omnifc ends at 10,000 rows" in " ".join(printed.split())
    assert "   size " not in CliRunner().invoke(main, words).output
