"""`coterie compare`, and `coterie simulate` over several numbers of clusters."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from support.terminal import Terminal, read

from clustering_protocols import catalogue
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.dc import PROTOCOL as DC
from clustering_protocols.records.arrays import FloatArray


def table(path: Path, X: FloatArray, classes: Sequence[int]) -> Path:
    names = ",".join(f"x{number}" for number in range(X.shape[1]))
    lines = [
        ",".join([f"p{row:04}", *(f"{value:.6g}" for value in values), f"c{kind}"])
        for row, (values, kind) in enumerate(zip(X, classes, strict=True))
    ]
    path.write_text("\n".join([f"id,{names},class", *lines, ""]))
    return path


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    X, kinds = make_blobs(60, 4, centers=3, cluster_std=0.5, random_state=3)
    return table(tmp_path / "blobs.csv", X, kinds)


READ = ("--id-column", "id", "--truth", "class")
QUICK = (*READ, "--protocol", "dc", "--layout", "2x2", "--n-clusters", "2..4")


def test_what_there_is_without_a_session_stands_beside_it(
    terminal: Terminal, blobs: Path
) -> None:
    words = ("compare", blobs, *READ, "--protocol", "dc", "--n-clusters", "3")
    layouts = ("--layout", "3x1", "--layout", "1x2")
    found = terminal.json(*words, *layouts)["baselines"]
    names = {(each["layout"], each["name"]): each for each in found}
    alone = "each party alone"
    assert names.keys() == {
        ("3x1", "pooled k-means"),
        ("3x1", alone),
        ("1x2", "pooled k-means"),
        ("1x2", alone),
    }
    assert names["3x1", "pooled k-means"]["truth"] == 1.0
    assert names["3x1", alone]["objective_ratio"] is None
    assert names["1x2", alone]["fidelity"] <= 1.0
    shown = terminal(*words, *layouts).stdout
    assert "3x1, k 3, each party alone" in shown


def test_the_document_holds_each_case_with_its_runs_and_costs(
    terminal: Terminal, blobs: Path
) -> None:
    shown = terminal("compare", blobs, *QUICK, "--json")
    assert shown.stderr == ""
    document = json.loads(shown.stdout)
    known = document["tables"][str(blobs)]
    assert known["rows"] == known["tried_rows"] == 60
    assert known["columns"] == ["x0", "x1", "x2", "x3"]
    [case] = document["cases"]
    assert (case["protocol"], case["layout"]) == ("dc", "2x2")
    assert case["params"] == {"n_clusters": 4, "dimensions": "all"}
    assert [lane["n_clusters"] for lane in case["lanes"]] == [2, 3, 4]
    assert all(lane["inertia"] > 0 for lane in case["lanes"])
    assert case["chosen"] == 3
    assert case["fidelity"] == case["truth"]["ARI"] == 1
    assert case["pooled_truth"]["ARI"] == 1
    assert case["rounds"] > 2
    assert case["sent_bytes"] > 10_000
    assert case["seconds"].keys() == {"analyst", "slowest_party"}
    assert "dc.by-design" in case["risks"]
    assert case["risks_of_several_runs"] == []


def test_all_protocols_that_fit_are_tried_and_the_others_named(
    terminal: Terminal, blobs: Path
) -> None:
    words = ("compare", blobs, *READ, "--layout", "3x1", "--n-clusters", "2..3")
    document = terminal.json(*words)
    tried = {case["protocol"] for case in document["cases"]}
    left = {each["protocol"]: each["reason"] for each in document["left_out"]}
    advised = {name for name, known in catalogue.catalogue().items() if known.methods}
    assert tried | left.keys() == advised
    assert {"dc", "llf", "omnifc"} <= tried
    assert "negative numbers" in left["fccm"]
    assert "split columns" in left["pqmds"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--n-clusters", "few"), "a range such as 2..8"),
        (("--protocol", "unknown"), "Known protocols: "),
        (("--protocol", "dc", "--layout", "1x9"), "4 columns cannot be split into 9"),
        (("--protocol", "dc", "--layout", "99x1"), "60 rows cannot be split into 99"),
        (("--protocol", "dc", "--param", "llf.scaling=none"), "'llf' is not compared"),
        (("--protocol", "dc", "--param", "odd=1"), "odd: "),
        (("--protocol", "dc", "--choose", "beauty"), "davies_bouldin"),
        (("--n-clusters", "3", "--choose", "inertia"), "several n_clusters"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_cannot_be_compared_is_told_in_a_sentence(
    terminal: Terminal, blobs: Path, words: tuple[str, ...], said: str
) -> None:
    shown = terminal("compare", blobs, *READ, *words, expect=5)
    assert said in shown.stderr
    assert "Traceback" not in shown.output


def test_risks_that_several_runs_bring_stand_beneath_the_table(
    terminal: Terminal, blobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "coordinates-open-the-row-group"
    monkeypatch.setattr(type(DC), "risks_of_runs", lambda *_: (code,))
    shown = terminal("compare", blobs, *QUICK).stdout
    assert "best by simplified_silhouette" in shown
    assert f"several runs in one session bring a risk (dc 2x2): dc.{code}: " in shown
    [case] = terminal.json("compare", blobs, *QUICK)["cases"]
    assert case["risks_of_several_runs"] == [f"dc.{code}"]


def test_a_simulation_of_several_k_reports_all_and_the_choice(
    terminal: Terminal, blobs: Path
) -> None:
    words = ("simulate", "dc", "--data", blobs, *READ, "--param", "n_clusters=2..4")
    document = terminal.json(*words)
    assert [lane["n_clusters"] for lane in document["lanes"]] == [2, 3, 4]
    assert (document["chosen"], document["fidelity"]) == (3, 1)
    assert sorted(document["cluster_sizes"]) == [20, 20, 20]
    assert document["roles"].keys() == {"analyst", "r1c1", "r2c1", "r3c1"}
    shown = terminal(*words, "--choose", "calinski_harabasz").stdout
    assert "best by calinski_harabasz" in shown
    assert "clusters  20, 20, 20 rows" in shown


def written_labels(path: Path) -> list[int]:
    return [int(line["label"]) for line in read(path)]


def test_simulated_dc_finds_the_classes_in_file_order(
    terminal: Terminal, blobs: Path
) -> None:
    out, paper = terminal.folder / "labels.csv", terminal.folder / "manifest.json"
    groups = ("--row-groups", "2", "--column-groups", "2", "--seed", "4")
    options = ("--param", "n_clusters=3", "--labels", out, "--manifest", paper)
    words = ("simulate", "dc", "--data", blobs, *READ)
    report = terminal.json(*words, *groups, *options)
    manifest = json.loads(paper.read_text())
    assert manifest["seed"] == 4
    assert manifest["result"]["fidelity"] == report["fidelity"] == 1
    assert manifest["result"]["objective_ratio"] == report["objective_ratio"]
    classes = np.unique([line["class"] for line in read(blobs)], return_inverse=True)
    assert adjusted_rand(classes[1], np.array(written_labels(out))) == 1
    assert set(report["truth"]) == set(report["pooled_truth"]) != set()
    assert report["roles"].keys() == {"analyst", "r1c1", "r1c2", "r2c1", "r2c2"}
    assert all(role["sent_bytes"] > 0 for role in report["roles"].values())


def test_rows_of_no_cluster_are_counted_apart(terminal: Terminal, blobs: Path) -> None:
    out = terminal.folder / "labels.csv"
    density = ("--param", "algorithm=dbscan", "--param", "eps=0.3")
    words = ("simulate", "omnifc", "--data", blobs, *READ, *density, "--labels", out)
    report = terminal.json(*words)
    n_noise = written_labels(out).count(-1)
    assert 0 < report["noise_rows"] == n_noise
    assert sum(report["cluster_sizes"]) + n_noise == 60
    assert f"noise     {n_noise} rows" in terminal(*words, "--force").stdout
