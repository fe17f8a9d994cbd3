"""The evidence page shows what was measured, and a small part of it is measured again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import evidence, evidence_page, evidence_pictures
from benchmarks.datasets import sample
from benchmarks.evidence_fidelity import (
    LAYOUTS,
    PARTIES,
    cases,
    evaluate,
    parameters,
    way_of,
)
from clustering_protocols import catalogue
from clustering_protocols.common.errors import CoterieError

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
AGAIN = ("iris", "wine")  # small, and bundled with scikit-learn
LOSSLESS = {"fccm", "llf", "omnifc"}
SLACK = 0.02  # libraries round differently; a label or two may move
PAGE = evidence.PAGE.read_text()


def measured() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(evidence.MEASURED.read_text())
    return found


def rows(**wanted: Any) -> list[dict[str, Any]]:
    return [r for r in measured()["fidelity"] if wanted.items() <= r.items()]


# The page


def test_the_page_is_what_was_measured() -> None:
    assert evidence_page.render(measured()) + "\n" == PAGE
    for name, text in evidence_page.files(measured()).items():
        assert (evidence.PICTURES / name).read_text() == text


def test_the_pictures_are_what_was_measured(tmp_path: Path) -> None:
    evidence_pictures.draw(measured(), tmp_path)
    for name in evidence_page.PICTURES.values():
        kept = (evidence.PICTURES / name).read_text()
        assert numbers(kept) == pytest.approx(numbers((tmp_path / name).read_text()))
        assert f"evidence/{name}" in PAGE


def numbers(svg: str) -> list[float]:
    """Return the places of the dots: fonts move other things."""
    return [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]


def test_the_page_names_no_machine_and_no_folder() -> None:
    assert not re.search(r"/(?:home|root|tmp|work|Users)/|\.py:\d", PAGE)
    assert not re.search(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", PAGE)


def test_every_way_was_measured_on_every_bundled_set() -> None:
    found = {
        (r["protocol"], r["way"], r["partitioning"], r["set"])
        for r in measured()["fidelity"]
    }
    assert set(cases(BUNDLED)) <= found


def test_every_protocol_has_tables() -> None:
    advised = {
        name
        for name, known in catalogue.catalogue().items()
        if any(way.agreement for way in known.methods)
    }
    assert set(evidence.TABLES) == set(measured()["tables"]) == advised


def test_the_page_names_the_commands_that_are_run() -> None:
    for name, each in measured()["tables"].items():
        assert each["command"] == f"python -m {evidence.TABLES[name]}"
        assert f"`{each['command']}`" in PAGE


def test_the_makefile_runs_it() -> None:
    makefile = (evidence.ROOT / "Makefile").read_text()
    assert "-m benchmarks.evidence\n" in makefile


# The figures


def test_lossless_protocols_lost_nothing() -> None:
    for row in measured()["fidelity"]:
        if row["protocol"] in LOSSLESS:
            few = "features are too few" in row.get("refused", "")
            assert few or row["least"] == 1.0, row


@pytest.mark.parametrize("case", cases(AGAIN), ids="-".join)
@pytest.mark.quick(6)
def test_a_small_set_measured_again_is_no_worse(
    case: tuple[str, str, str, str],
) -> None:
    protocol, name, partitioning, which = case
    [row] = rows(protocol=protocol, way=name, partitioning=partitioning, set=which)
    X, classes = sample(which, row["rows"])
    given = parameters(protocol, way_of(protocol, name, partitioning), X, classes)
    assert given == row["params"]
    params = catalogue.parse_params(protocol, given)
    if "refused" in row:
        with pytest.raises(CoterieError, match=re.escape(row["refused"])):
            evaluate(params, X, partitioning, 0)
        return
    run, _ = evaluate(params, X, partitioning, 0)
    assert run.fidelity >= row["first"] - SLACK
    assert run.simulated.rounds == row["rounds"] or protocol in LOSSLESS
    assert len(np.unique(run.labels[run.labels >= 0])) == row["clusters"]


def test_layouts_have_the_parties_that_the_page_names() -> None:
    assert {len(layout.slots) for layout in LAYOUTS.values()} == {PARTIES}


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
                    row["mean"]
                    for row in rows(**of_way)
                    # one cluster, or none: agreement says nothing
                    if row.get("clusters", 0) > 1
                ]
                assert stated == (round(min(means), 2), round(max(means), 2))
