"""What docker/Dockerfile makes, on this machine: its RUN lines, in another place.

The newest Python that is here stands for the image's; the packages come from where pip
finds them. So it is the analyst's own lock that is tried: alone, with hashes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.analyst_process import Analyst, Crowd
from support.repeats import only_in

from clustering_protocols import simulation
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
COMMIT = "0123456789ab"
MOST_MEGABYTES = 420
OF_PARTIES = ("duckdb", "pyarrow", "python_calamine")
OF_BUILDS = ("pip", "hatchling", "editables")

pytestmark = only_in("image", "environments of the image")


@dataclass(frozen=True)
class Image:
    """The folders of the image, below one of this machine."""

    root: Path
    environment: dict[str, str]

    @property
    def packages(self) -> Path:
        [found] = self.root.glob("opt/coterie/lib/python*/site-packages")
        return found

    def place(self, text: str) -> str:
        """Put absolute paths of the image below the folder."""
        return re.sub(r"(?<![\w./])/(opt|wheels|data)\b", rf"{self.root}/\1", text)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "opt" / "coterie" / "bin" / words[0]), *words[1:]],
            env=self.environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )


def build_steps() -> list[str]:
    """Return the commands of the stage in which everything is installed."""
    stage = DOCKERFILE.partition(" AS build\n")[2].partition("\nFROM ")[0]
    stage = "\n".join(line for line in stage.splitlines() if not line.startswith("#"))
    lines = stage.replace("\\\n", " ").splitlines()
    steps = [line.removeprefix("RUN ") for line in lines if line.startswith("RUN ")]
    return [step for step in steps if "apt-get" not in step]  # the compiler is here


def arguments() -> dict[str, str]:
    return dict(re.findall(r'^ARG (\w+)="?([^"\n]+)"?$', DOCKERFILE, re.MULTILINE))


def ignored() -> list[str]:
    """Return what is not copied into the image, as names of files."""
    lines = (ROOT / ".dockerignore").read_text().split()
    return [line.removeprefix("**/").removeprefix("docker/") for line in lines]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    root = tmp_path_factory.mktemp("image")
    source = root / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*ignored()))
    programs = root / "programs"
    programs.mkdir()
    (programs / "python").symlink_to(os.path.realpath(sys.executable))
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COTERIE"))
    }
    kept["PATH"] = f"{programs}:{os.defpath}"
    building = kept | arguments() | {"COMMIT": COMMIT}
    made = Image(root, kept | {"COTERIE_DATA_DIR": str(root / "data")})
    steps = build_steps()
    assert len(steps) > 1
    for step in steps:
        words = ["/bin/sh", "-ec", made.place(step)]
        done = subprocess.run(
            words, cwd=source, env=building, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return made


class ImageAnalyst(Analyst):
    def __init__(self, image: Image, data_dir: Path) -> None:
        super().__init__(data_dir, cold=True)
        self.image = image

    def _launch(self) -> subprocess.Popen[bytes]:
        [words] = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
        here = {"0.0.0.0": "127.0.0.1", "8000": str(self.port)}
        command = [here.get(word, word) for word in json.loads(words)]
        command[0] = str(self.image.root / "opt" / "coterie" / "bin" / command[0])
        kept = self.image.environment | {"COTERIE_DATA_DIR": str(self.data_dir)}
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, env=kept, cwd=self.data_dir, stdout=log, stderr=log
            )


@pytest.fixture(scope="module")
def analyst_of_the_file(
    image: Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Analyst]:
    with ImageAnalyst(image, tmp_path_factory.mktemp("analyst") / "data") as running:
        yield running


def test_it_has_what_an_analyst_needs_and_no_more(image: Image) -> None:
    """As ``du --block-size=1M`` counts: blocks of 2^20 bytes, compiled modules and all."""
    files = (image.root / "opt" / "coterie").rglob("*")
    megabytes = sum(path.lstat().st_blocks * 512 for path in files) / (1 << 20)
    print(f"The analyst's environment takes {megabytes:.0f} MB.")  # noqa: T201  -rP shows it
    assert megabytes <= MOST_MEGABYTES
    there = [n for n in OF_PARTIES + OF_BUILDS if (image.packages / n).exists()]
    assert there == []


def test_it_says_the_commit_that_it_was_built_from(image: Image) -> None:
    assert f"(commit {COMMIT}, " in image.run("coterie", "--version").stdout


def test_it_makes_the_schema_and_a_key(image: Image) -> None:
    done = image.run("coterie", "migrate")
    assert "was created" in done.stderr, done.stderr
    assert image.run("coterie", "key", "create", "--label", "x").stdout[:3] == "ck_"


def test_a_command_of_a_party_says_what_is_missing(image: Image) -> None:
    done = image.run("coterie", "try")
    assert done.returncode == 5
    assert "pip install coterie" in done.stderr
    assert "Traceback" not in done.stderr


X = np.random.default_rng(3).normal(size=(60, 6)) + np.repeat(
    np.eye(3, 6) * 9, 20, axis=0
)


def test_it_takes_a_session_to_the_labels_of_the_simulation(
    analyst: Analyst, home: Path, session_id: str
) -> None:
    params = DataCollaboration(n_clusters=3, dimensions="all_but_one")
    parts = simulation.split(X, Layout.lattice(2, 2), seed=1)
    crowd = Crowd(analyst, home, params, parts, session=session_id)
    crowd.start()
    assert crowd.labels() == crowd.expected()
    crowd.close()
