"""Notebooks and the Python of the pages run as they are printed.

The code of a notebook runs in this process, cell after cell in one namespace: that is
what a kernel does with it, without the weight of one.
"""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_wine
from support.warm_child import start_warm

from tests.unit.docs.pages import PYTHON, ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    start_warm(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return {}


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return found


@each
def test_a_notebook_is_whole_and_holds_nothing_of_a_machine(path: Path) -> None:
    for cell in cells(path):
        assert cell["cell_type"] == "markdown" or (
            cell["outputs"] == [] and cell["execution_count"] is None
        )
        for target in _LINK.findall("".join(cell["source"])):
            assert (path.parent / target).exists(), target
    assert not re.search(r"/(home|root|tmp|Users)/", path.read_text())


@each
def test_the_cells_of_a_notebook_run(path: Path, reader: dict[str, Any]) -> None:
    codes = ["".join(c["source"]) for c in cells(path) if c["cell_type"] == "code"]
    for number, code in enumerate(codes):
        exec(compile(code, f"{path.name}, code cell {number}", "exec"), reader)
    if path.stem == "three-hospitals":
        assert reader["trial"].fidelity_ == 1.0
        assert list(reader["labelled"].columns[-2:]) == ["triglycerides", "label"]
        assert len(reader["results"]) == 3
        assert sum(reader["overall"].n_rows) == len(reader["people"])
    else:
        assert reader["several"].n_clusters_ == 3  # of as many sorts of wine


def test_python_of_the_readme_runs_as_printed(
    reader: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    [code] = PYTHON.findall((ROOT / "README.md").read_text())
    exec(compile(code, "README.md", "exec"), reader)
    assert capsys.readouterr().out == "3 clusters, fidelity 1.0\n"


def test_python_of_the_researchers_page_runs(reader: dict[str, Any]) -> None:
    reader["X"] = load_wine().data
    for code in PYTHON.findall((ROOT / "docs" / "researcher.md").read_text()):
        exec(textwrap.dedent(code), reader)
    assert reader["run"].fidelity > 0.9


@pytest.mark.filterwarnings("ignore:The clusters follow the institutions")
def test_python_of_its_own_page_runs_up_to_other_machines(
    reader: dict[str, Any],
) -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    here, _, _ = page.partition("## Between institutions")
    for code in PYTHON.findall(here):
        exec(compile(code, "docs/python.md", "exec"), reader)
    assert Path("labels.csv").exists()
    assert Path("north.svg").exists()
    assert reader["labelled"]["label"].tolist() == reader["results"][0].labels.tolist()
