"""A test that replaces a function of the protocols and never enters it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import seams

CASE = """
import pytest
from clustering_protocols.engine import transcript

{mark}
def test_lie(monkeypatch):
    monkeypatch.setattr(transcript, "number_of", lambda line: 7)
    {call}
"""
MARK = '@pytest.mark.unused_seam("number_of")'


@pytest.mark.parametrize(
    ("call", "mark", "passes"),
    [
        ("assert transcript.number_of('') == 7", "", True),
        ("pass", "", False),
        ("pass", MARK, True),
    ],
    ids=["called", "never called", "not to be called"],
)
@pytest.mark.slow
def test_a_replaced_function_has_to_be_called(
    call: str,
    mark: str,
    passes: bool,  # noqa: FBT001  a case
    tmp_path: Path,
) -> None:
    file, listed = tmp_path / "test_case.py", tmp_path / "seams"
    file.write_text(CASE.format(call=call, mark=mark))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "support.seams"),
            *("-p", "no:cacheprovider", "--seams", str(listed)),
            *("--rootdir", str(tmp_path), str(file)),
        ],
        env=os.environ | {"PYTHONPATH": str(Path(seams.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode == 0) == passes, ended.stdout
    assert ("never called" in ended.stdout) == (not passes)
    assert listed.read_text().startswith(
        "clustering_protocols.engine.transcript.number_of\t"
    )
