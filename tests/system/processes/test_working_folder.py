"""Children of Python import nothing from the folder in which a person works."""

import ast
import subprocess
from pathlib import Path

import pytest
from support.product import ROOT, trees

from party_sdk.supervisor import supervisor

STRAY = "raise SystemExit('a stray file was imported')\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a person works: files of theirs have names of Python's own modules."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("logging", "signal", "numpy", "click"):
        (work / f"{name}.py").write_text(STRAY)
    monkeypatch.chdir(work)
    return work


def test_every_module_that_is_run_is_run_without_it() -> None:
    found = []
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.List | ast.Tuple):
                words = [
                    each.value for each in node.elts if isinstance(each, ast.Constant)
                ]
                if "-m" in words:
                    assert words[words.index("-m") - 1] == "-P", path
                    found.append(path.relative_to(ROOT))
    assert len(found) == 3


def test_an_order_starts_beside_stray_files(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*supervisor.PROGRAM, str(tmp_path / "home"), "session", "slot"],
        stdin=subprocess.PIPE,  # it ends once this is closed
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        told = child.stderr.read()
    assert "stray" not in told
    assert told.startswith("session slot:")  # there is no such order
