"""A protocol in a package of its own goes through every side that names the package."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from support.analyst_process import Analyst
from support.protocol_wheels import ROOT, install, write_metadata, write_project

LABELS = [i % 3 for i in range(12)]
PYTHON = """
import json
import numpy as np
from coterie import CannotCluster, FederatedKMeans, Parrot, simulate
X = np.arange(24.0).reshape(12, 2)
print(json.dumps(simulate(Parrot(n_clusters=3), X, (2, 1), seed=1).labels.tolist()))
fitted = FederatedKMeans(3, protocol="parrot", layout=(2, 1), random_state=1).fit(X)
print(json.dumps(fitted.labels_.tolist()))
try:
    FederatedKMeans(protocol="stray").fit([X, X])
except CannotCluster as error:
    print(json.dumps(str(error)))
"""
PARTIES = """
import json, sys
from coterie import Coordinator, Layout, Parrot, Party
url, key, path = sys.argv[1:]
with Coordinator(url, key) as coordinator:
    session = coordinator.create_session("parrots", Parrot(n_clusters=3), Layout.lattice(1))
    [invitation] = session.invite().values()
with Party.join(invitation) as party:
    print(json.dumps(party.run(path).labels.tolist()))
"""


class Machine(NamedTuple):
    """A home, and a path where two packages with protocols are installed."""

    environment: dict[str, str]
    folder: Path

    @property
    def stray(self) -> Path:
        """The file that the package writes which nobody names, once it is imported."""
        return self.folder / "stray-was-imported"

    def name(self, *packages: str) -> None:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        risks = ["parrot.by-design", "house.open-slot"]
        text = f"accepted_risks = {json.dumps(risks)}\nleast_known = 0\n"
        text += f"protocol_packages = {json.dumps(packages)}\n" if packages else ""
        (home / "policy.toml").write_text(text)

    def ended(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            env=self.environment | more,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, *words: str, **more: str) -> str:
        done = self.ended(*words, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def coterie(self, *words: str, **more: str) -> str:
        return self.run("-m", "party_sdk.cli", *words, **more)

    @contextmanager
    def analyst(self, packages: str) -> Iterator[Analyst]:
        named = self.environment | {"COTERIE_PROTOCOL_PACKAGES": packages}
        with Analyst(self.folder / "analyst", environment=named, cold=True) as analyst:
            yield analyst


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where both packages are installed."""
    folder = tmp_path_factory.mktemp("packages")
    parrot = write_project(folder / "a", "parrot")
    marks = "\nimport os, pathlib\npathlib.Path(os.environ['STRAY']).touch()\n"
    stray = write_project(folder / "b", "stray", first=marks)
    site = folder / "site"
    install(parrot, site)
    shutil.copytree(stray / "coterie_stray", site / "coterie_stray")
    write_metadata(
        site, "coterie_stray", "[coterie.protocols]\nstray = coterie_stray\n"
    )
    return site


@pytest.fixture
def machine(tmp_path: Path, place: Path) -> Machine:
    known = {k: v for k, v in os.environ.items() if not k.startswith("COTERIE_")}
    machine = Machine(
        known
        | {
            "PYTHONPATH": f"{ROOT}{os.pathsep}{place}",
            "COTERIE_HOME": str(tmp_path / "home"),
            "STRAY": str(tmp_path / "stray-was-imported"),
        },
        tmp_path,
    )
    rows = tmp_path / "rows.csv"
    with rows.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *([i, -i] for i in range(12))])
    return machine


def test_the_stray_package_shows_that_it_was_imported(machine: Machine) -> None:
    """The mark that the other tests look for can be made."""
    machine.run("-c", "import coterie_stray")
    assert machine.stray.exists()


def test_service_sdk_and_commands_take_a_named_package(machine: Machine) -> None:
    machine.name("coterie-parrot")
    rows = ["--data", "rows.csv"]
    played = json.loads(machine.coterie("simulate", "parrot", *rows, "--json"))
    assert played["fidelity"] == 1.0
    assert "by-design" in machine.coterie("protocols", "parrot")
    with machine.analyst("coterie-parrot") as analyst:
        listed = httpx.get(f"{analyst.url}/v1/protocols").json()
        offered = [each["name"] for each in listed["protocols"]]
        assert "parrot" in offered
        assert "stray" not in offered
        at = {"COTERIE_URL": analyst.url, "COTERIE_KEY": analyst.key}
        create = ["session", "create", "parrots", "--protocol", "parrot"]
        create += ["--param", "n_clusters=3", "--json"]
        opened = json.loads(machine.coterie(*create, **at))
        run = ["party", "run", opened["invitations"]["r1c1"], *rows]
        machine.coterie(*run, "--labels", "labels.csv", **at)
        sdk = machine.run("-c", PARTIES, analyst.url, analyst.key, "rows.csv")
    with (machine.folder / "labels.csv").open() as file:
        assert [int(row["label"]) for row in csv.DictReader(file)] == LABELS
    assert json.loads(sdk) == LABELS
    assert not machine.stray.exists()


def test_python_takes_a_named_package(machine: Machine) -> None:
    machine.name("coterie-parrot")
    labels, fitted, refused = map(json.loads, machine.run("-c", PYTHON).splitlines())
    assert sorted(labels) == sorted([*range(3)] * 4)
    assert fitted == labels
    assert "omnifc, parrot, pqmds" in refused
    assert not machine.stray.exists()


def test_a_package_that_nobody_names_is_loaded_by_neither_side(
    machine: Machine,
) -> None:
    machine.name()
    for words in (["simulate", "parrot", "--data", "rows.csv"], ["protocols", "stray"]):
        done = machine.ended("-m", "party_sdk.cli", *words)
        assert done.returncode == 5
        assert "Known protocols: cohort, dc, " in done.stderr
    with machine.analyst("") as analyst:
        listed = httpx.get(f"{analyst.url}/v1/protocols").json()
        assert not {"parrot", "stray"} & {e["name"] for e in listed["protocols"]}
        asked = {"name": "stray", "params": {}}
        key = {"Authorization": f"Bearer {analyst.key}"}
        put = httpx.put(
            f"{analyst.url}/v1/sessions/s1", json={"protocol": asked}, headers=key
        )
        assert put.status_code == 422
    assert not machine.stray.exists()
