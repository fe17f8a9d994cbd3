"""Advice: what fits, why the rest does not, and a command that works."""

import itertools
import json
import shlex
from typing import Any

import pytest
from support.drawn_terms import drawn
from support.terminal import coterie

from clustering_protocols import catalogue
from clustering_protocols.common.suitability import Exposure
from clustering_protocols.contract.disclosures import analyst_exposures
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.session_risks import Harm
from party_sdk.advice import Advice, Situation, advise, layout_of
from party_sdk.cli.session.commands import create
from party_sdk.coordinator.option_parsing import parse_layout, parse_values

PARTITIONINGS = ("horizontal", "vertical", "mixed")
SITUATIONS = [
    Situation(
        partitioning=partitioning, parties=parties, distances=distances, data=data
    )
    for partitioning, parties, distances, data in itertools.product(
        PARTITIONINGS, (2, 3, 4, 5, 9), (False, True), ("numeric", "counts")
    )
    if partitioning != "mixed" or parties > 2
]
every_situation = pytest.mark.parametrize("situation", SITUATIONS, ids=repr)
METHODS = {
    (name, way.name, partitioning)
    for name, known in catalogue.catalogue().items()
    for way in known.methods
    for partitioning in way.partitionings
}


def names(found: Advice) -> list[str]:
    return [fit.name for fit in found.fits]


def test_every_protocol_but_the_dummy_says_what_it_is_for() -> None:
    named = {name for name, *_ in METHODS} | {"cohort", "describe"}
    offered = {n for n, known in catalogue.catalogue().items() if not known.for_tests}
    assert named == offered, "a protocol needs 'methods', or 'for_tests'"
    for name, known in catalogue.catalogue().items():
        taken = {split for way in known.methods for split in way.partitionings}
        assert taken == (set(known.partitionings) if known.methods else set()), name


@pytest.mark.parametrize(("name", "algorithm", "partitioning"), sorted(METHODS))
def test_what_somebody_sees_goes_with_the_risk_codes(
    name: str, algorithm: str, partitioning: Any
) -> None:
    """Who says that rows stay hidden brings no code that says the opposite."""
    known = catalogue.protocol(name)
    way = next(
        way
        for way in known.methods
        if way.name == algorithm and partitioning in way.partitionings
    )
    layout = layout_of(partitioning, 4)
    params = catalogue.parse_params(name, way.recommended_params(3))
    known.check_params(params, layout)
    codes = set(known.risks_of(params, layout))
    (design,) = (code for code in codes if code.startswith("by-design"))
    harm = known.risks[design].harm
    to_a_party = harm in {Harm.GEOMETRY, Harm.ROWS} or session_risks.SOLVABLE in codes
    alone, with_one_party = analyst_exposures(known.disclosures(params, layout))
    assert to_a_party == (with_one_party is Exposure.ROWS)
    assert (alone >= Exposure.GEOMETRY) == (harm is Harm.GEOMETRY)
    assert with_one_party >= alone


@every_situation
def test_every_protocol_fits_or_has_a_reason(situation: Situation) -> None:
    found = advise(situation)
    fitting = {fit.protocol for fit in [*found.fits, *found.with_distances]}
    advised = {name for name, known in catalogue.catalogue().items() if known.methods}
    assert fitting | set(found.unsuitable) == advised
    assert not fitting & set(found.unsuitable)
    assert all(found.unsuitable.values())


def test_without_distances_only_masked_sums_fit() -> None:
    two = advise(Situation(partitioning="horizontal", parties=2))
    assert "3 parties" in two.unsuitable["llf"], "two cannot mask a sum"
    rows = advise(Situation(partitioning="horizontal", parties=5))
    assert {fit.protocol for fit in rows.fits} == {"llf", "mixture"}
    counts = advise(Situation(partitioning="vertical", parties=5, data="counts"))
    assert not counts.fits  # each site computes the columns of the others
    assert [fit.protocol for fit in counts.with_distances] == ["fccm"]
    columns = advise(Situation(partitioning="vertical", parties=5))
    assert not columns.fits
    assert {fit.protocol for fit in columns.with_distances} == {"dc", "llf", "pqmds"}


def test_what_shows_least_comes_first() -> None:
    for situation in SITUATIONS:
        seen = [fit.exposures for fit in advise(situation).fits]
        assert seen == sorted(seen)


@every_situation
def test_the_command_draws_up_the_terms_whose_risks_are_told(
    situation: Situation,
) -> None:
    for fit in advise(situation).fits:
        program, *words = shlex.split(fit.command)
        assert [program, *words[:2]] == ["coterie", "session", "create"]
        given = create.make_context("create", words[2:], resilient_parsing=False).params
        values = parse_values(given["params"])
        if given["clusters"]:
            values["n_clusters"] = int(given["clusters"])
        params = catalogue.parse_params(given["protocol"], values)
        assert given["protocol"] == fit.protocol
        assert params == catalogue.parse_params(fit.protocol, fit.params)
        layout = parse_layout(given["parties"], same_people=given["same_people"])
        assert layout == fit.layout
        assert len(layout.slots) == situation.parties
        assert drawn(params, layout).risks == fit.risks


def test_json_says_what_is_printed() -> None:
    words = ("advise", "--partitioning", "vertical", "--parties", "3")
    words = (*words, "--distances", "yes")
    document = json.loads(coterie(*words, "--json").stdout)
    shown = coterie(*words).stdout
    assert shown.count("coterie session create") == 3
    for number, fit in enumerate(document["fits"], start=1):
        assert f"{number}. {fit['protocol']}, {fit['algorithm']}" in shown
        assert fit["command"].startswith("coterie session create")
        assert fit["risks"]
    assert set(document["others"]) == {"fccm", "mixture", "omnifc"}
    assert "alignment.method=ecdh" in shown


def test_the_answer_about_trust_that_opens_more_is_named() -> None:
    words = ("advise", "--partitioning", "mixed", "--parties", "4")
    shown = coterie(*words).stdout
    assert "No method fits" in shown
    assert "With --distances yes these would fit: dc, kmeans; dc, spectral." in shown
    also = coterie("advise", "--partitioning", "horizontal", "--parties", "4").stdout
    assert "With --distances yes these would also fit" in also
