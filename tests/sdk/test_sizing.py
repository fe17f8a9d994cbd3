"""What is said about the size of a session before it opens."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.terms import Layout
from party_sdk.advice import Situation, advise, check_sizes, size_warnings
from party_sdk.cli import main

ACROSS, BESIDE = Layout.lattice(4), Layout.lattice(1, 4)


def warn(protocol: str, rows: int, layout: Layout = ACROSS, **values: object) -> str:
    params = catalogue.parse_params(protocol, {"n_clusters": 5, **values})
    check_sizes(params, layout, rows, 16)
    return " ".join(size_warnings(params, layout, rows, 16))


@pytest.mark.parametrize("partitioning", ["horizontal", "vertical", "mixed"])
def test_small_sessions_give_no_warning(partitioning: str) -> None:
    found = advise(
        Situation(partitioning=partitioning, parties=5, rows=20_000, distances=True)  # type: ignore[arg-type]  # parametrised
    )
    assert found.fits
    assert not [said for fit in found.fits for said in fit.warnings if "GB" in said]


def test_a_protocol_that_ends_below_says_where_and_what_helps() -> None:
    with pytest.raises(InvalidParameters, match=r"ends at 10,000 rows.*landmarks"):
        warn("omnifc", 10_001)
    assert warn("omnifc", 10_000) == ""
    assert warn("omnifc", 200_000, distances="landmarks", max_rows=200_000) == ""
    high = warn("omnifc", 200_000, max_rows=200_000, memory_limit=1 << 40)
    assert "A party sends up to 160." in high


def test_large_uploads_and_memory_are_named() -> None:
    text = warn("fccm", 10_000_000, BESIDE)
    assert "A party sends up to" in text
    assert "GB of memory" in text
    assert warn("llf", 10_000, BESIDE) == ""


def test_advise_prints_it() -> None:
    words = ["advise", "--partitioning", "horizontal", "--parties", "4"]
    words += ["--distances", "yes"]
    large = CliRunner().invoke(main, [*words, "--rows", "50000", "--json"])
    assert "omnifc" in json.loads(large.output)["others"]
    printed = CliRunner().invoke(main, [*words, "--rows", "50000"]).output
    assert "omnifc ends at 10,000 rows" in " ".join(printed.split())
