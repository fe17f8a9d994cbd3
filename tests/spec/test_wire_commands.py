"""`coterie wire`: programs of their own, checked line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.vectors.files import VECTORS
from party_sdk.cli.wire import wire
from party_sdk.conformance.vectors import read_layers, read_sessions

INDEPENDENT = (sys.executable, "-m", "tests.spec.independent")
PRODUCT = (sys.executable, "-m", "benchmarks.vectors.product")
LIAR = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    known = asked["call"] in {"tag", "lp"}
    said = {"output": {"tag": "7"}} if known else {"unknown": asked["call"]}
    print(json.dumps(said), flush=True)
"""
OTHER_CHANCE = """
from tests.spec.independent import __main__ as party
from tests.spec.independent.session import Session
draw = Session.draw
Session.draw = lambda self, stage, _, transcript: draw(self, stage, "x", transcript)
party.main()
"""


def run(*words: str | Path, program: Sequence[str]) -> Result:
    return CliRunner().invoke(wire, [*map(str, words), "--", *program])


@pytest.mark.parametrize("program", [INDEPENDENT, PRODUCT], ids=["independent", "own"])
def test_programs_pass_all_vectors_of_level_d(program: Sequence[str]) -> None:
    done = run("check", VECTORS, "--level", "D", "--json", program=program)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    layers = sum(len(layer.cases) for layer in read_layers(VECTORS).values())
    sessions = [s for file in read_sessions(VECTORS).values() for s in file.sessions]
    recorded = [s for s in sessions if s.level <= "D"]
    steps = sum(len(s.steps) + len(s.refusals) for s in recorded)
    assert len(found) == layers + steps
    assert not any(each["left_out"] for each in found)


def test_a_report_names_section_case_and_difference(tmp_path: Path) -> None:
    program = tmp_path / "liar.py"
    program.write_text(LIAR)
    done = run("check", VECTORS, program=(sys.executable, str(program)))
    assert done.exit_code == 5
    assert "section 10, primitives / a tag of three words, tag: " in done.output
    assert "'7' came" in done.output
    assert "of unknown calls were left out: agreement (" in done.output


@pytest.mark.parametrize(
    ("program", "slot"),
    [(INDEPENDENT, "north"), (PRODUCT, "west")],
    ids=["independent", "own"],
)
def test_a_program_plays_a_session_with_this_sdk(
    program: Sequence[str], slot: str
) -> None:
    options = ("dc", "--slot", slot, "--param", "n_clusters=3")
    done = run("rehearse", *options, program=program)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "round 0.0, beginning, init → nothing: as expected"
    assert "round 4.1, moments, add-up → share: as expected" in lines
    assert lines[-1].endswith("row-group-labels → labels: as expected")


GIVEN = (
    "n_clusters=3",
    'init="given"',
    "initial_centroids=[[0,0,0],[4,4,4],[8,8,8]]",
    'algorithm="fuzzy_cmeans"',
)


@pytest.mark.parametrize("fuzzifier", ['"auto"', "2.0"])
@pytest.mark.parametrize("slot", ["north", "west"])
def test_degrees_of_rows_are_rehearsed(slot: str, fuzzifier: str) -> None:
    params = (*GIVEN, f"fuzzifier={fuzzifier}", 'small_cohorts="allow"')
    named = [each for param in params for each in ("--param", param)]
    done = run("rehearse", "llf", "--slot", slot, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "close → closing: as expected" in done.output


WITHIN = ("--range", "-8", "16", "--param", 'init="bounds"')


@pytest.mark.parametrize("publish", ["centroids", "sizes", "nothing"])
@pytest.mark.parametrize("scaling", ["minmax", "none"])
@pytest.mark.parametrize("slot", ["north", "west"])
def test_starts_within_ranges_are_rehearsed(
    slot: str, scaling: str, publish: str
) -> None:
    params = ("n_clusters=4", f'scaling="{scaling}"', f'publish="{publish}"')
    named = [each for param in params for each in ("--param", param)]
    done = run("rehearse", "llf", "--slot", slot, *WITHIN, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "tell → told: as expected" in done.output


@pytest.mark.parametrize("slot", ["north", "west"])
@pytest.mark.parametrize(
    "params",
    [
        ("n_clusters=2", 'init="careful"'),
        ("n_clusters=1,2", "n_init=3", "min_cluster_rows=2"),
        ("n_clusters=2", 'init="random_party"', "n_init=2"),
        ("n_clusters=2", 'init="random_party"', 'publish="sizes"'),
    ],
)
def test_starts_of_parties_are_rehearsed(slot: str, params: Sequence[str]) -> None:
    named = [each for param in params for each in ("--param", param)]
    done = run("rehearse", "llf", "--slot", slot, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "settle → settled: as expected" in done.output


FOUR = ("north=1,1", "south=2,1", "west=3,1", "east=4,1")


@pytest.mark.parametrize(
    "away",
    [("south=12", "north=13"), ("west=11", "west=13"), ("west=14", "west=15")],
)
def test_a_program_goes_on_without_some(away: Sequence[str]) -> None:
    options = [("--place", place) for place in FOUR]
    options += [("--away", each) for each in away]
    params = ("n_clusters=2", 'init="random_party"', "quorum=3", "max_iter=3")
    options += [("--param", each) for each in params]
    named = [each for option in options for each in option]
    done = run("rehearse", "llf", "--slot", "west", *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    missed = [each.removeprefix("west=") for each in away if "west" in each]
    assert not any(f"round {number}.1" in done.output for number in missed)


@pytest.mark.parametrize("away", ["east=12", "west"])
def test_who_is_away_is_a_slot_in_a_round(away: str) -> None:
    options = ("llf", "--param", "n_clusters=2", "--away", away)
    done = run("rehearse", *options, program=INDEPENDENT)
    assert done.exit_code == 2
    assert "not one of the slots" in done.output


OTHER_STARTS = """
from tests.spec.independent import __main__ as party, llf_start
cluster = llf_start._cluster
def other(Z, weights, k, stream):
    V, labels = cluster(Z, weights, k, stream)
    return {change}, labels
llf_start._cluster = other
party.main()
"""


@pytest.mark.parametrize(("change", "code"), [("V[::-1] + 0.01", 0), ("V + 2e100", 5)])
def test_a_program_may_choose_other_starts_within_bounds(
    tmp_path: Path, change: str, code: int
) -> None:
    program = tmp_path / "other.py"
    program.write_text(OTHER_STARTS.format(change=change))
    options = ("llf", "--slot", "north", "--param", "n_clusters=2")
    done = run("rehearse", *options, program=(sys.executable, str(program)))
    assert done.exit_code == code, done.output


OTHER_SIZES = """
from tests.spec.independent import __main__ as party, llf_start
propose = llf_start._Starter._propose
def other(self, here):
    found = propose(self, here)
    return {{**found, "sizes": found["sizes"] + {more}}}
llf_start._Starter._propose = other
party.main()
"""


@pytest.mark.parametrize(("more", "code"), [(0, 0), (1, 5), (15, 5)])
def test_a_program_describes_no_more_rows_than_it_has(
    tmp_path: Path, more: int, code: int
) -> None:
    program = tmp_path / "other.py"
    program.write_text(OTHER_SIZES.format(more=more))
    options = ("llf", "--slot", "west", "--param", "n_clusters=2")
    done = run("rehearse", *options, program=(sys.executable, str(program)))
    assert done.exit_code == code, done.output
    assert ("sizes.items: True is due, False came" in done.output) == (code == 5)


SITES = ("north=1,1", "south=1,2", "west=1,3")
"""Slots that hold different items of the same objects."""


@pytest.mark.parametrize("slot", ["north", "west"])
@pytest.mark.parametrize(
    "options",
    [
        ("n_clusters=3",),
        ("n_clusters=2,3", 'init="random_rows"', 'alignment={"method":"ecdh"}'),
        ("n_clusters=2", 'init="random_rows"', 'algorithm="fuzzy_cmeans"'),
        ("n_clusters=5", 'init="bounds"', 'scaling="none"', 'publish="nothing"'),
    ],
)
def test_columns_of_llf_are_rehearsed(slot: str, options: Sequence[str]) -> None:
    places = [each for site in SITES for each in ("--place", site)]
    named = [each for option in options for each in ("--param", option)]
    within = ("--range", "-8", "16")
    known = ("--slot", slot, *places, *named, *within)
    done = run("rehearse", "llf", *known, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "measure → distances: as expected" in done.output


@pytest.mark.parametrize("normalisation", ["global", "site"])
@pytest.mark.parametrize("slot", ["north", "west"])
def test_sites_rehearse_sums_that_are_asked_for_again(
    slot: str, normalisation: str
) -> None:
    said = ("n_clusters=3", "n_init=2", "lambda_w=0.05", "max_iter=6")
    params = (*said, f'normalisation="{normalisation}"')
    options = [("--place", site) for site in SITES]
    options += [("--param", each) for each in params]
    named = [each for option in options for each in option]
    done = run("rehearse", "fccm", "--slot", slot, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    sums = [line for line in done.output.splitlines() if "add → share" in line]
    assert (len(sums) > 7) == (normalisation == "global")


LANDMARKS = ('distances="landmarks"', "segments=2")
OPEN = ("hide_segments=false", 'scaling="none"', 'ranges="declared"')


@pytest.mark.parametrize(
    ("slot", "n_slots", "options", "params"),
    [
        ("north", 5, (), LANDMARKS),
        ("west", 5, (), LANDMARKS),
        ("west", 3, (), ('scaling="minmax"', "bits=20")),
        ("north", 4, ("--range", "-8", "16"), OPEN),
        ("south", 3, (), ('scaling="unit_norm"', 'algorithm="fuzzy_cmeans"')),
    ],
    ids=["leader", "member", "pooled ranges", "quorum", "lengths"],
)
def test_shares_of_rows_are_rehearsed(
    slot: str, n_slots: int, options: Sequence[str], params: Sequence[str]
) -> None:
    names = ("north", "south", "west", "east", "centre")[:n_slots]
    said = [("--param", each) for each in ("n_clusters=3", *params)]
    said += [("--place", f"{name}={row + 1},1") for row, name in enumerate(names)]
    named = [*options, *(each for option in said for each in option)]
    done = run("rehearse", "omnifc", "--slot", slot, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "compare → answer: as expected" in done.output


ALL_CODES = ("sub_dim=8", "coordinates=8", 'normalise="minmax"', 'weights="centres"')
FEW = ("codebook_size=4", 'alignment={"method":"ecdh"}')
GAUSSIAN = 'privacy={"mechanism":"gaussian","epsilon":40.0,"delta":0.00001}'
LAPLACE = 'privacy={"mechanism":"laplace","epsilon":300.0}'
RANGES = ("--range", "-8", "16")


@pytest.mark.parametrize(
    ("slot", "options", "params"),
    [
        ("north", (), ALL_CODES),
        ("south", (), ("sub_dim=1", 'scaling="none"')),
        ("west", (), FEW),
        ("north", RANGES, (GAUSSIAN, "coordinates=2")),
        ("west", RANGES, (LAPLACE,)),
    ],
    ids=["all codes", "single columns", "few centres", "gaussian", "laplace"],
)
def test_codes_of_rows_are_rehearsed(
    slot: str, options: Sequence[str], params: Sequence[str]
) -> None:
    said = [("--param", each) for each in ("n_clusters=3", *params)]
    said += [("--place", site) for site in SITES]
    named = [*options, *(each for option in said for each in option)]
    done = run("rehearse", "pqmds", "--slot", slot, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "encode → codes: as expected" in done.output


@pytest.mark.parametrize(
    ("protocol", "slot", "places"),
    [
        ("fccm", "north", SITES),
        ("fccm", "west", SITES),
        ("dc", "south", ("north=1,1", "south=1,2", "west=2,1", "east=2,2")),
        ("dc", "west", ("north=1,1", "south=1,2", "west=2,1")),
    ],
)
def test_common_rows_are_rehearsed(
    protocol: str, slot: str, places: Sequence[str]
) -> None:
    options = [("--place", place) for place in places]
    params = ("n_clusters=3", 'alignment={"method":"ecdh"}')
    options += [("--param", param) for param in params]
    named = [each for option in options for each in option]
    done = run("rehearse", protocol, "--slot", slot, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "intersection, select → digests: as expected" in done.output


@pytest.mark.parametrize("choose", ["usual", "criterion", "later"])
def test_several_runs_have_stages_of_their_own(choose: str) -> None:
    options = [("--place", site) for site in SITES]
    options += [("--param", each) for each in ("n_clusters=[2,3,4]", "max_iter=3")]
    named = [each for option in (*options, ("--choose", choose)) for each in option]
    done = run("rehearse", "fccm", "--slot", "west", *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "updates-3, tell → told: as expected" in done.output
    assert "closing, conclude → signed: as expected" in done.output


KEYS = (
    "given_name, surname | sorted-names + birth_date | date",
    "surname | first:6 + birth_date | year-month",
)
"""Of every fourth person one party has no given name: the second key links it."""


@pytest.mark.parametrize(
    ("slot", "places"),
    [
        ("north", ("north=1,1", "south=1,2", "west=1,3")),
        ("south", ("north=1,1", "south=1,2", "west=1,3", "east=2,1", "coast=2,2")),
        ("east", ("north=1,1", "south=1,2", "east=2,1")),
    ],
)
def test_linked_people_are_rehearsed(slot: str, places: Sequence[str]) -> None:
    alignment = json.dumps({"method": "ecdh", "match_keys": KEYS})
    done = rehearse_linked(slot, alignment, places)
    assert "linkage, select-linked → digests: as expected" in done.output


def rehearse_linked(
    slot: str,
    alignment: str,
    places: Sequence[str],
    protocol: str = "dc",
    params: Sequence[str] = ("n_clusters=3",),
) -> Result:
    options = [("--place", place) for place in places]
    options += [("--param", param) for param in (*params, f"alignment={alignment}")]
    named = [each for option in options for each in option]
    done = run("rehearse", protocol, "--slot", slot, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert done.output.endswith("→ labels: as expected\n")
    return done


@pytest.mark.parametrize("seed", ["0", "3"])
@pytest.mark.parametrize("slot", ["north", "west"])
@pytest.mark.parametrize("protocol", ["dc", "llf"])
def test_profiles_are_rehearsed(protocol: str, slot: str, seed: str) -> None:
    params = GIVEN[:3] if protocol == "llf" else GIVEN[:1]
    readers = "everybody" if protocol == "llf" else "members"
    options = ("--slot", slot, "--seed", seed, "--profiles", readers)
    named = [each for param in params for each in ("--param", param)]
    done = run("rehearse", protocol, *options, *named, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "profiles, tell-profile → profile-told: as expected" in done.output


@pytest.mark.parametrize("released", ['output="coordinates"', "predictor=true"])
def test_a_program_reads_more_than_labels(released: str) -> None:
    params = ("--param", "n_clusters=3", "--param", released)
    done = run("rehearse", "dc", "--slot", "west", *params, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    assert "row-group-model → labels: as expected" in done.output


FILLED = (
    ("dc", "mean", ("n_clusters=3",), ()),
    ("dc", "median", ("n_clusters=3",), ("north=1,1", "south=1,2", "west=2,1")),
    ("dc", "drop", ("n_clusters=3",), ()),
    ("llf", "median", GIVEN[:3], ()),
    ("llf", "mean", ("n_clusters=3",), SITES),
)
"""In the second, the first and the last slot fill together, the other one alone."""


@pytest.mark.parametrize("slot", ["north", "south"])
@pytest.mark.parametrize(("protocol", "missing", "params", "places"), FILLED)
def test_filled_values_are_rehearsed(
    protocol: str,
    missing: str,
    params: Sequence[str],
    places: Sequence[str],
    slot: str,
) -> None:
    options = [("--place", place) for place in places]
    options += [("--param", param) for param in params]
    named = [each for option in options for each in option]
    said = ("--range", "-8", "16", "--missing", missing)
    done = run("rehearse", protocol, "--slot", slot, *named, *said, program=INDEPENDENT)
    assert done.exit_code == 0, done.output
    filled = "filling, add-up → share: as expected" in done.output
    assert filled == (missing != "drop")


def test_what_is_missing_goes_with_a_range() -> None:
    options = ("--param", "n_clusters=3", "--missing", "mean")
    done = run("rehearse", "dc", *options, program=PRODUCT)
    assert done.exit_code == 2
    assert "--range" in done.output


def test_a_rehearsal_says_what_was_expected_and_what_came(tmp_path: Path) -> None:
    program = tmp_path / "other.py"
    program.write_text(OTHER_CHANCE)
    done = run("rehearse", "dummy", program=(sys.executable, str(program)))
    assert done.exit_code == 5
    assert (
        "round 2.1, greeting, greet → greeted: .contribution.sealed[0]" in done.output
    )


def test_a_rehearsal_ends_where_a_program_does_not_begin() -> None:
    anchors = ("--param", 'anchor={"kind":"smote"}')
    params = ("--param", "n_clusters=3", *anchors)
    done = run("rehearse", "dc", *params, program=INDEPENDENT)
    assert done.exit_code == 5
    (line,) = done.output.splitlines()
    assert line.endswith("{'problem': 'version-mismatch'} came")


def test_a_program_that_cannot_be_started_is_named() -> None:
    done = run("rehearse", "dummy", program=("/no/such/program",))
    assert "'/no/such/program' cannot be started" in str(done.exception)


def test_a_program_that_ends_is_told_apart() -> None:
    done = run("rehearse", "dummy", program=(sys.executable, "-c", "pass"))
    assert "ended without an answer" in str(done.exception)


def test_a_slot_that_there_is_not_is_wrong_usage() -> None:
    done = run("rehearse", "dummy", "--slot", "east", program=PRODUCT)
    assert done.exit_code == 2
    assert "north, south, west" in done.output
