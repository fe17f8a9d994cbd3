"""Advice: what fits, why the rest does not, and a command that works."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from support.analyst_process import Analyst

from clustering_protocols import catalogue, session_terms
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.suitability import Exposure, RoundBudget
from clustering_protocols.terms.terms import Layout, SessionRequest
from party_sdk.advice.advice import Advice, Situation, advise, layout_of
from party_sdk.advice.relaxed_answers import find_relaxed_answers
from party_sdk.cli import main
from party_sdk.cli.session.commands import create
from party_sdk.coordinator.option_parsing import read_layout, read_values

PARTITIONINGS = ("horizontal", "vertical", "mixed")
SITUATIONS = [
    Situation(partitioning=partitioning, parties=parties, collusion=collusion)
    for partitioning, parties, collusion in itertools.product(
        PARTITIONINGS, (2, 3, 4, 5, 9), (False, True)
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


def names(found: Advice) -> list[tuple[str, str]]:
    return [(fit.protocol, fit.way.name) for fit in found.fits]


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="coterie")


# The facts


def test_every_protocol_but_the_dummy_says_what_it_is_for() -> None:
    assert {name for name, *_ in METHODS} == set(catalogue.catalogue()) - {"dummy"}
    for name, known in catalogue.catalogue().items():
        taken = {split for way in known.methods for split in way.partitionings}
        assert taken == (set(known.partitionings) if known.methods else set()), name


def test_a_way_is_named_by_protocol_algorithm_and_partitioning() -> None:
    listed = [
        (name, way.name, partitioning)
        for name, known in catalogue.catalogue().items()
        for way in known.methods
        for partitioning in way.partitionings
    ]
    assert len(listed) == len(set(listed))


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
    layout = layout_of(Situation(partitioning=partitioning, parties=4))
    params = catalogue.parse_params(name, way.parameters(3))
    known.check(params, layout)
    codes = set(known.risks_of(params, layout))
    opens = {
        "colluding-party-opens-column-group",
        "distances-are-data-up-to-motion",
        "differences-show-geometry",
        "colluding-party-names-rows",
    }
    assert bool(codes & opens) == (way.exposure_with_one_party is Exposure.ROWS)
    assert (way.analyst_sees >= Exposure.GEOMETRY) == bool(codes & opens)
    assert way.exposure_with_one_party >= way.analyst_sees


# What fits


def test_of_all_ways_each_fits_somewhere() -> None:
    found = {
        (fit.protocol, fit.way.name, situation.partitioning)
        for situation in SITUATIONS
        for fit in advise(situation).fits
    }
    assert found == METHODS


@every_situation
def test_every_protocol_fits_or_has_reasons(situation: Situation) -> None:
    found = advise(situation)
    fitting = {fit.protocol for fit in found.fits}
    advised = {name for name, known in catalogue.catalogue().items() if known.methods}
    assert fitting | set(found.others) == advised
    assert not fitting & set(found.others)
    assert all(reasons and all(reasons) for reasons in found.others.values())


@every_situation
def test_risks_are_those_of_the_terms(situation: Situation) -> None:
    for fit in advise(situation).fits:
        proposal = SessionRequest(
            protocol={"name": fit.protocol, "params": dict(fit.params)},
            layout=fit.layout,
            seed=0,
        )
        terms = json.loads(session_terms.draw_up("s", proposal))
        assert tuple(terms["risks"]) == tuple(fit.risks)
        assert len(fit.layout.slots) == situation.parties


def test_two_parties_cannot_mask_a_sum() -> None:
    found = advise(Situation(partitioning="horizontal", parties=2))
    assert "llf" in found.others
    assert "3 parties" in " ".join(found.others["llf"])


def test_rows_split_and_an_analyst_that_may_see_nothing_is_llf() -> None:
    found = advise(
        Situation(partitioning="horizontal", parties=5, analyst_sees=Exposure.NOTHING)
    )
    assert {name for name, _ in names(found)} == {"llf"}


def test_one_upload_is_dc_or_pqmds() -> None:
    found = advise(
        Situation(partitioning="vertical", parties=3, rounds=RoundBudget.ONE)
    )
    assert {name for name, _ in names(found)} == {"dc", "pqmds"}
    assert "many rounds" in " ".join(found.others["llf"])


def test_counts_in_co_clusters_are_fccm() -> None:
    found = advise(
        Situation(
            partitioning="vertical", parties=3, data="counts", shape="co-clusters"
        )
    )
    assert names(found) == [("fccm", "fccm")]


def test_arbitrary_shapes_are_spectral_dbscan_or_hierarchical() -> None:
    found = advise(Situation(partitioning="horizontal", parties=3, shape="arbitrary"))
    assert set(names(found)) == {
        ("dc", "spectral"),
        ("omnifc", "spectral"),
        ("omnifc", "dbscan"),
        ("omnifc", "hierarchical"),
    }


def test_collusion_leaves_masked_sums() -> None:
    rows = advise(Situation(partitioning="horizontal", parties=5, collusion=True))
    assert {name for name, _ in names(rows)} == {"llf"}
    columns = advise(Situation(partitioning="vertical", parties=5, collusion=True))
    assert {name for name, _ in names(columns)} == {"fccm"}


def test_rows_that_overlap_in_part_are_aligned_or_refused() -> None:
    found = advise(Situation(partitioning="vertical", parties=3, overlap=False))
    assert all(fit.params["alignment"] for fit in found.fits)
    for name in found.others:
        aligns = "alignment" in catalogue.protocol(name).params.model_fields
        assert aligns or name == "omnifc" or "same rows" in " ".join(found.others[name])


def test_what_shows_least_comes_first() -> None:
    for situation in SITUATIONS:
        seen = [fit.way.analyst_sees for fit in advise(situation).fits]
        assert seen == sorted(seen)


def test_two_parties_do_not_split_both_ways() -> None:
    with pytest.raises(InvalidParameters):
        advise(Situation(partitioning="mixed", parties=2))


# The command to begin with


@every_situation
def test_the_command_is_understood(situation: Situation) -> None:
    for fit in advise(situation).fits:
        program, *words = shlex.split(fit.command)
        assert [program, *words[:2]] == ["coterie", "session", "create"]
        given = create.make_context("create", words[2:], resilient_parsing=False).params
        params = catalogue.parse_params(given["protocol"], read_values(given["params"]))
        assert given["protocol"] == fit.protocol
        assert params == catalogue.parse_params(fit.protocol, fit.params)
        slots, rows, columns = (
            given[name] for name in ("slots", "row_groups", "column_groups")
        )
        assert (
            read_layout(slots) if slots else Layout.lattice(rows, columns)
        ) == fit.layout


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyst]:
    with Analyst(tmp_path_factory.mktemp("analyst")) as analyst:
        yield analyst


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_the_analyst_accepts_the_command(
    partitioning: Any, served: Analyst, tmp_path: Path
) -> None:
    environment = {
        "COTERIE_URL": served.url,
        "COTERIE_KEY": served.key,
        "COTERIE_HOME": str(tmp_path),
    }
    for fit in advise(Situation(partitioning=partitioning, parties=5)).fits:
        title = f"{fit.protocol}-{fit.way.name}-{partitioning}".replace("_", "-")
        words = shlex.split(fit.command.replace("my-session", title))[1:]
        done = CliRunner().invoke(main, [*words, "--json"], env=environment)
        assert done.exit_code == 0, done.output
        opened = json.loads(done.stdout)
        assert len(opened["invitations"]) == 5
        assert opened["risks"] == list(fit.risks)


# The command itself

TRUSTING = ("--analyst-sees", "geometry", "--collusion", "no")


def test_what_nobody_answers_protects_most() -> None:
    words = ("advise", "--partitioning", "horizontal", "--parties", "3", "--json")
    document = json.loads(run(*words).stdout)
    assert document["answers"]["analyst_sees"] == "nothing"
    assert document["answers"]["collusion"] == "yes"
    assert {fit["protocol"] for fit in document["fits"]} == {"llf"}


def test_two_answers_are_relaxed_where_one_is_not_enough() -> None:
    words = ("advise", "--partitioning", "mixed", "--parties", "4")
    [relaxed] = json.loads(run(*words, "--json").stdout)["relaxed_answers"]
    assert relaxed["answers"] == {"analyst_sees": "geometry", "collusion": "no"}
    assert relaxed["methods"][0]["protocol"] == "dc"
    options = "--analyst-sees geometry --collusion no"
    assert f"With {options} these would fit" in run(*words).stdout


def test_json_says_what_is_printed() -> None:
    words = ("advise", "--partitioning", "vertical", "--parties", "3", *TRUSTING)
    document = json.loads(run(*words, "--json").stdout)
    shown = run(*words, "--all").stdout
    assert document["fits"]
    for fit in document["fits"]:
        assert fit["command"] in shown
        assert all(code in shown for code in fit["risks"])
    assert set(document["others"]) == {"omnifc"}


def test_nobody_is_asked_where_there_is_no_terminal() -> None:
    done = run("advise", "--parties", "3")
    assert done.exit_code == 2
    assert "--partitioning" in done.stderr


def test_what_is_missing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def prompt(question: str, **options: Any) -> Any:
        asked.append(question)
        return {"How many parties": 3}.get(question, options["default"]) or "vertical"

    monkeypatch.setattr(click, "prompt", prompt)
    there = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("party_sdk.cli.advise.sys", there)
    done = run("advise", "--shape", "spherical", *TRUSTING)
    assert done.exit_code == 0, done.output
    assert "pqmds" in done.stdout
    assert len(asked) == 5  # all but what was given


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_as_many_parties_as_a_layout_holds(partitioning: str) -> None:
    given = ("--partitioning", partitioning, "--parties")
    assert run("advise", *given, "249").exit_code == 0
    assert run("advise", *given, "250").exit_code == 2


def test_no_fit_is_said() -> None:
    done = run(
        "advise", "--partitioning", "mixed", "--parties", "4", "--shape", "fuzzy"
    )
    assert "No protocol fits" in done.stdout
    assert "dc" in done.stdout


# Three best, and what would have to change


def test_each_fit_says_why_it_comes_before_the_next() -> None:
    for situation in SITUATIONS:
        found = advise(situation)
        reasons = [reason for _, reason in found.with_reasons()]
        assert len(reasons) == len(found.fits)
        for (fit, reason), following in zip(
            found.with_reasons(), found.fits[1:], strict=False
        ):
            assert f"{following.protocol}, {following.way.name}." in reason
            sees = (fit.way.analyst_sees, following.way.analyst_sees)
            assert reason.startswith("The analyst can work out less") == (
                sees[0] < sees[1]
            )


def test_three_are_printed_whole_unless_all_are_asked_for() -> None:
    words = ("advise", "--partitioning", "vertical", "--parties", "3", *TRUSTING)
    n_fits = len(json.loads(run(*words, "--json").stdout)["fits"])
    assert n_fits > 3
    assert run(*words).stdout.count("begin with") == 3
    assert run(*words, "--all").stdout.count("begin with") == n_fits


@pytest.mark.parametrize(
    "situation",
    [
        Situation(partitioning="mixed", parties=4, shape="fuzzy"),
        Situation(
            partitioning="vertical",
            parties=3,
            shape="arbitrary",
            analyst_sees=Exposure.NOTHING,
        ),
        Situation(
            partitioning="horizontal",
            parties=3,
            analyst_sees=Exposure.NOTHING,
            rounds=RoundBudget.ONE,
        ),
    ],
)
def test_a_relaxed_answer_makes_methods_fit(situation: Situation) -> None:
    assert not advise(situation).fits
    found = find_relaxed_answers(situation)
    assert found
    for each in found:
        [question] = each.answers
        changed = {
            "shape": replace(situation, shape=None),
            "analyst_sees": replace(situation, analyst_sees=Exposure.GEOMETRY),
            "rounds": replace(situation, rounds=RoundBudget.MANY),
        }[question]
        fits = advise(changed).fits
        assert each.methods == tuple((fit.protocol, fit.way.name) for fit in fits)


def test_an_answer_that_is_not_in_the_way_is_not_relaxed() -> None:
    situation = Situation(partitioning="mixed", parties=4, shape="fuzzy")
    found = find_relaxed_answers(situation)
    assert [each.answers for each in found] == [{"shape": "any"}]
    assert (
        "--shape any"
        in run(
            *("advise", "--partitioning", "mixed", "--parties", "4"),
            *("--shape", "fuzzy", *TRUSTING),
        ).stdout
    )
