"""The same clusters as last quarter: new labels beside the old ones, and who moved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from support.analyst_process import House
from support.in_process import in_process

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.llf.messages import PublishedResult
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout
from party_sdk.cli import main
from party_sdk.coordinator.repetition import Changes, given_starts, like
from party_sdk.results.label_moves import compare_labels, read_labels
from party_sdk.tables import open_table

CENTRES = np.array([[20.0, -20.0], [0.0, 20.0], [-20.0, -5.0]])
SCHEMA = numbers(("a", "b"), -60, 60)


def labels(seed: int, n: int = 200) -> dict[str, int]:
    rng = np.random.default_rng(seed)
    ids = rng.choice(300, n, replace=False)
    return {f"p{i}": int(rng.integers(-1, 4)) for i in ids}


def write(path: Path, found: dict[str, int]) -> Path:
    frame = pd.DataFrame({"patient": list(found), "label": list(found.values())})
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(
        path, index=False
    )
    return path


def test_counts_are_those_of_pandas() -> None:
    before, after = labels(0), labels(1)
    found = compare_labels(before, after, match=False)
    both = pd.DataFrame({"was": pd.Series(before), "now": pd.Series(after)}).dropna()
    assert found.n_common == len(both)
    assert (found.n_gone, found.n_new) == (200 - len(both), 200 - len(both))
    assert found.n_moved == int((both["was"] != both["now"]).sum())
    expected = pd.crosstab(both["was"], both["now"])
    assert found.counts.tolist() == expected.to_numpy().tolist()
    assert list(found.before) == expected.index.tolist()


def test_clusters_with_other_numbers_are_matched_first() -> None:
    before = {f"p{n}": n % 3 for n in range(90)}
    after = {key: {0: 2, 1: 0, 2: 1}[label] for key, label in before.items()}
    after["p0"] = 0
    assert compare_labels(before, after, match=False).n_moved == 89
    found = compare_labels(before, after, match=True)
    assert found.n_moved == 1
    assert dict(found.matched) == {0: 2, 1: 0, 2: 1}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_read_as_they_were_written(tmp_path: Path, ending: str) -> None:
    found = {"007": 1, "a,b": 0, "x": -1}
    assert read_labels(write(tmp_path / f"labels.{ending}", found)) == found


def test_files_that_are_no_labels_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidData, match="'label'"):
        read_labels(tmp_path / "other.csv")
    (tmp_path / "twice.csv").write_text("id,label\nx,1\nx,2\n")
    with pytest.raises(InvalidData, match="1 rows twice"):
        read_labels(tmp_path / "twice.csv")
    (tmp_path / "labels.txt").write_text("id,label\n")
    with pytest.raises(InvalidParameters, match=r"neither \.csv"):
        read_labels(tmp_path / "labels.txt")


def test_the_command_says_how_many_moved(tmp_path: Path) -> None:
    before = write(tmp_path / "before.csv", {f"p{n}": n % 2 for n in range(20)})
    after = write(tmp_path / "after.csv", {f"p{n}": n % 2 for n in range(1, 22)})
    words = ["party", "moves", str(before), str(after)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "moved: 0 of 19 rows" in done.output
    said = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert (said["gone"], said["new"], said["moved"]) == (1, 2, 0)


def quarter(seed: int, sizes: tuple[int, int, int]) -> list[Any]:
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat([0, 1, 2], sizes))
    X = CENTRES[truth] + rng.normal(size=(len(truth), 2))
    ids = [f"q{seed}-{n}" for n in range(len(X))]
    frame = pd.DataFrame({"id": ids, "a": X[:, 0], "b": X[:, 1], "truth": truth})
    return [frame[n::3] for n in range(3)]


def test_a_session_goes_on_with_the_clusters_of_the_earlier_one(tmp_path: Path) -> None:
    """Though their sizes are in another order now: they keep their numbers."""
    with in_process(tmp_path / "analyst", driven=True) as api:
        house = House(api, tmp_path, fixed=False)
        params = LosslessFederated(n_clusters=3, small_cohorts="allow")
        first = house.open("spring", params, Layout.lattice(3), dictionary=[SCHEMA])
        means = []
        for number, sizes in enumerate([(40, 60, 80), (90, 70, 50)]):
            parts = quarter(number, sizes)
            opened = first
            if number:
                starts = given_starts(first.summary(), 3)
                asked = like(first.terms, (), Changes(params=starts))
                opened = house.coordinator.create_session(**asked, session_id="summer")
            tables = [
                open_table(part[["id", "a", "b"]], id_column="id", schema=SCHEMA)
                for part in parts
            ]
            results = house.run(opened, tables)
            found = np.concatenate([each.labels for each in results.values()])
            whole = pd.concat(parts)
            means.append(whole[["a", "b"]].groupby(found).mean().to_numpy())
    assert np.abs(means[0] - CENTRES[[2, 1, 0]]).max() < 2
    assert np.abs(means[1] - means[0]).max() < 2


def test_without_published_centroids_there_is_no_start() -> None:
    summary: Any = PublishedResult(
        clusters=np.arange(2),
        centroids=np.zeros((2, 3)),
        sizes=np.array([40, 20]),
        n_updates=3,
    )
    with pytest.raises(InvalidParameters, match="no centroids of all clusters"):
        given_starts(summary, 3)
