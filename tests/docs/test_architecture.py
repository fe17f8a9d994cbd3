"""docs/architecture.md tells where an upload goes, and what a protocol imports."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.in_process import Api, in_process
from support.product import PRODUCT, nodes

from clustering_protocols import contract, simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from party_sdk.application.home import Home
from party_sdk.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
DUMMY = ROOT / "clustering_protocols" / "protocols" / "dummy"
MOST_FILES, MOST_NAMES = 40, 26
MOST_ENTERED = 216  # 214, and two more where a machine is so slow that one waits
MOST_NARROWED = 4
OURS = tuple(f"{ROOT / name}/" for name in PRODUCT)
ELSEWHERE = {"analyst_service/jobs/processes.py"}  # here steps run in this process


def section(title: str) -> str:
    """The text of a section of the page."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def cells(text: str, column: int) -> list[str]:
    """What the rows of a table have in code type in one column."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[column])]


# Floors

FLOORS = section("Floors")


@pytest.mark.parametrize(
    "package",
    ["analyst_service", "clustering_protocols", "coterie_pages", "party_sdk"],
)
def test_the_page_shows_every_room_of_a_package(package: str) -> None:
    [floors] = [line for line in FLOORS.splitlines() if f"| `{package}` |" in line]
    rooms = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"`(\w+)`", floors))


# One upload

UPLOAD = section("One upload is a straight line")
FILES = cells(UPLOAD, 2)


def test_the_page_counts_the_files_that_an_upload_passes_through() -> None:
    assert len(set(FILES)) == len(FILES) <= MOST_FILES
    assert f"passes these {len(FILES)} files" in UPLOAD


@contextmanager
def traced() -> Iterator[set[str]]:
    """Collect the files of the product of which a function is called, in any thread."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        # no body of a module: which are imported already differs from run to run
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            called.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def run_command(analyst: AbstractContextManager[Api], folder: Path) -> Result:
    """What one party's command says that takes its labels, in this process."""
    folder.mkdir()
    X = np.random.default_rng(0).normal(size=(12, 3))
    np.savetxt(folder / "rows.csv", X, delimiter=",", header="a,b,c", comments="")
    with analyst as api, pytest.MonkeyPatch.context() as patched:
        patched.setattr(Home, "connect", lambda *_: api.connect())
        parts = simulation.split(X, Layout.lattice(1), seed=0)
        words = ["party", "run", api.open(Dummy(), parts).invitation("r1c1")]
        words += ["--data", str(folder / "rows.csv"), "--home", str(folder / "p")]
        words += ["--labels", str(folder / "labels.csv")]
        words += ["--accept-risk", "dummy.row-count-is-known"]
        words += ["--accept-risk", "house.open-slot", "--guard", "least_known=0"]
        return CliRunner().invoke(main, words)


def test_the_command_goes_through_these_files(tmp_path: Path) -> None:
    # what the first one imports and keeps in memory, the second one finds there: which
    # tests were before is chance
    for folder in (tmp_path / "first", tmp_path / "second"):
        with traced() as called:
            done = run_command(in_process(folder / "api", driven=True), folder)
        assert done.exit_code == 0, done.output
    assert {f for f in FILES if str(ROOT / f) not in called} == ELSEWHERE
    entered = {name for name in called if name.startswith(OURS)}
    assert len(entered) <= MOST_ENTERED, "a session passes more files: merge some"


# What a protocol imports

ADDING = section("Adding a protocol")
LISTED = set(cells(ADDING, 2))


def imported(folder: Path) -> set[str]:
    """The names that a protocol imports from outside its folder."""
    found = [n for path in folder.glob("*.py") for n in nodes(path)]
    return {
        alias.name
        for node in found
        if isinstance(node, ast.ImportFrom) and not node.level
        if (node.module or "").startswith("clustering_protocols")
        for alias in node.names
    }


def test_the_page_lists_what_the_dummy_imports() -> None:
    names = imported(DUMMY)
    assert names == LISTED
    assert len(names) <= MOST_NAMES
    assert f"These {len(names)} names" in ADDING


def test_the_page_names_all_that_the_contract_offers_and_no_more() -> None:
    others = ADDING.partition("`contract` offers")[2]
    optional = set(re.findall(r"`(\w+)`", others))
    assert not optional & LISTED
    assert (LISTED & set(contract.__all__)) | optional == set(contract.__all__)


def test_every_name_of_the_contract_serves_a_protocol() -> None:
    used = {
        name
        for folder in DUMMY.parent.iterdir()
        if folder.is_dir()
        for name in imported(folder)
    }
    assert set(contract.__all__) <= used


# What loses its type on the way


def test_records_get_their_type_back_in_few_places() -> None:
    packages = ("clustering_protocols", "party_sdk", "analyst_service")
    calls = [
        node.func.attr
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    assert calls.count("narrow") == MOST_NARROWED
