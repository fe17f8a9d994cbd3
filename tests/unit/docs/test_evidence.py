"""The evidence page shows what was measured, and a small part of it is measured again."""

import re

import numpy as np
import pytest

from benchmarks import evidence, evidence_page
from benchmarks.datasets import load, sample
from benchmarks.evidence_fidelity import case_of, cases, evaluate, parameters, way_of
from benchmarks.papers.baselines import factorise, rebuild_rows
from benchmarks.papers.cells import (
    Cause,
    Cell,
    has_too_many_outliers,
    printed,
    rows as judge,
)
from clustering_protocols import catalogue
from clustering_protocols.common.errors import CoterieError

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
AGAIN = ("iris", "wine")  # small, and bundled with scikit-learn
LOSSLESS = {"fccm", "llf", "mixture", "omnifc"}
SLACK = 0.02  # libraries round differently; a label or two may move
PAGE = evidence.PAGE.read_text()
MEASURED = evidence.load()


def rows(**wanted: str) -> list[dict[str, str]]:
    return [r for r in MEASURED["fidelity"] if wanted.items() <= r.items()]


def test_the_page_is_what_was_measured() -> None:
    drawn = evidence_page.draw_pictures(MEASURED)
    for path, text in evidence.texts().items():
        if path.suffix == ".svg":
            # fonts move other things than the places of the dots
            assert numbers(path.read_text()) == pytest.approx(numbers(text))
        else:
            assert path.read_text() == text
    assert drawn.keys() <= evidence_page.PICTURES.keys()
    assert all(f"evidence/{name}.svg" in PAGE for name in drawn)


def numbers(svg: str) -> list[float]:
    return [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]


def test_every_number_on_the_page_stands_in_a_file() -> None:
    assert not evidence_page.missing_numbers(PAGE, MEASURED)
    assert evidence_page.missing_numbers("12,345 rows", MEASURED) == {"12,345"}


def test_the_page_names_no_machine_and_no_folder() -> None:
    assert not re.search(r"/(?:home|root|tmp|work|Users)/|\.py:\d", PAGE)
    assert not re.search(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", PAGE)


def test_every_way_was_measured_on_every_bundled_set() -> None:
    assert set(cases(BUNDLED)) <= set(map(case_of, MEASURED["fidelity"]))


def test_every_protocol_has_tables() -> None:
    methods = {name: known.methods for name, known in catalogue.catalogue().items()}
    advised = {name for name in methods if any(way.agreement for way in methods[name])}
    assert set(evidence_page.TABLES) == advised - {"mixture"}  # of no paper's tables


@pytest.mark.parametrize("part", evidence.DRAWS)
def test_more_than_chance_is_beyond_only_where_the_page_says_so(part: str) -> None:
    assert has_too_many_outliers(MEASURED[part]) == (part in {"fccm", "omnifc"})
    cell = printed(part)
    for line in MEASURED[part]:
        assert bool(line["cause"]) == (line["verdict"] in {"shown", "stated"})
        again = judge([cell(line["table"], line["set"], line["quantity"], [0.0])])
        assert again[0]["paper"] == line["paper"]


def test_a_cause_counts_as_shown_only_by_a_cell_that_is_near() -> None:
    def verdicts(*, shown_by: float) -> list[str]:
        cause = Cause("Another start.", "another start")
        cells = [
            Cell("Table 1", "iris", "ours", 0.5, [0.7, 0.72], cause=cause),
            Cell("Table 1", "iris", "another start", 0.5, [shown_by]),
            Cell("Table 1", "iris", "defaults", 0.5, [0.9]),
        ]
        return [line["verdict"] for line in judge(cells)]

    assert verdicts(shown_by=0.5) == ["shown", "near", "beyond"]
    assert verdicts(shown_by=0.6) == ["beyond", "beyond", "beyond"]


def test_two_spreads_are_those_of_the_draws_or_the_paper() -> None:
    spread = [0.4, 0.6]
    assert Cell("Table 1", "iris", "ours", 0.7, spread).near
    assert not Cell("Table 1", "iris", "ours", 0.71, spread).near
    assert Cell("Table 1", "iris", "ours", 0.71, [0.5], paper_spread=0.11).near


def test_the_server_of_fedsc_rebuilds_every_row() -> None:
    X = load("iris").X
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    factors = factorise(np.array_split(rows, 3), seed=0)
    assert np.abs(rebuild_rows(factors) - rows).max() < 1e-9


def test_lossless_protocols_lost_nothing() -> None:
    for row in MEASURED["fidelity"]:
        if row["protocol"] in LOSSLESS:
            few = "features are too few" in row["refused"]
            refused = row["refused"] and (few or row["protocol"] == "mixture")
            assert refused or float(row["least"]) == 1.0, row


@pytest.mark.parametrize("case", cases(AGAIN), ids="-".join)
@pytest.mark.quick(6)
def test_a_small_set_measured_again_is_no_worse(
    case: tuple[str, str, str, str],
) -> None:
    protocol, name, partitioning, which = case
    [row] = rows(protocol=protocol, way=name, partitioning=partitioning, set=which)
    X, classes = sample(which, int(row["rows"]))
    given = parameters(protocol, way_of(protocol, name, partitioning), X, classes)
    params = catalogue.parse_params(protocol, given)
    if row["refused"]:
        with pytest.raises(CoterieError, match=re.escape(row["refused"])):
            evaluate(params, X, partitioning, 0)
        return
    run, _ = evaluate(params, X, partitioning, 0)
    assert run.fidelity >= float(row["first"]) - SLACK
    assert run.simulated.rounds == int(row["rounds"]) or protocol in LOSSLESS
    assert len(np.unique(run.labels[run.labels >= 0])) == int(row["clusters"])


def test_methods_state_the_agreement_that_was_measured() -> None:
    for name, protocol in catalogue.catalogue().items():
        for way in protocol.methods:
            assert set(way.agreement) in (set(), set(way.partitionings))
            for partitioning, stated in way.agreement.items():
                of_way = {
                    "protocol": name,
                    "way": way.name,
                    "partitioning": partitioning,
                }
                means = [
                    float(row["mean"])
                    for row in rows(**of_way)
                    # one cluster, or none: agreement says nothing
                    if int(row["clusters"] or 0) > 1
                ]
                assert stated == (round(min(means), 2), round(max(means), 2))
