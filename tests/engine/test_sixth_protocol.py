"""A sixth protocol is one new folder, and nothing else."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.analyst_process import Analyst

ROOT = Path(__file__).parents[2]
PACKAGES = ("analyst_service", "party_sdk", "clustering_protocols", "alembic")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A copy of the packages in which the dummy's folder stands twice."""
    copy = tmp_path / "copy"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package)
    folder = copy / "clustering_protocols" / "protocols"
    shutil.copytree(folder / "dummy", folder / "parrot")
    return os.environ | {"PYTHONPATH": str(copy)}


def coterie(environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "-m", "party_sdk.cli", *words]
    done = subprocess.run(
        command,
        env=environment,
        cwd=environment["PYTHONPATH"],  # `-m` looks in the current folder first
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_renamed_protocol_runs_in_service_sdk_and_cli(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    data = tmp_path / "rows.csv"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *([i, -i] for i in range(12))])
    simulated = coterie(
        environment, "simulate", "parrot", "--data", str(data), "--json"
    )
    assert json.loads(simulated)["fidelity"] == 1.0

    with Analyst(tmp_path / "analyst", environment=environment, cold=True) as analyst:
        here = environment | {
            "COTERIE_URL": analyst.url,
            "COTERIE_KEY": analyst.key,
            "COTERIE_HOME": str(tmp_path / "home"),
        }
        created = ["session", "create", "parrots", "--protocol", "parrot"]
        opened = json.loads(
            coterie(here, *created, "--param", "n_clusters=3", "--json")
        )
        assert opened["risks"] == ["parrot.row-count-is-known", "house.open-slot"]
        labels = tmp_path / "labels.csv"
        run = ["party", "run", opened["invitations"]["r1c1"], "--data", str(data)]
        accepted = [w for code in opened["risks"] for w in ("--accept-risk", code)]
        coterie(here, *run, *accepted, "--labels", str(labels))
        coterie(here, "session", "watch", opened["id"])

    with labels.open() as file:
        found = [int(row["label"]) for row in csv.DictReader(file)]
    assert found == [i % 3 for i in range(12)]
