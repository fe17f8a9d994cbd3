"""Compiled functions: kept where a folder can be written, and working where none can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import caching

from clustering_protocols.compiled import compiled

SCRIPT = """
import numpy as np
from clustering_protocols.algorithms import condensed
print(condensed.square(np.array([4.0])).tolist())
"""


def doubled(x: int) -> int:
    return 2 * x


def test_without_a_folder_to_keep_it_a_function_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = compiled(doubled)
    assert kept(4) == 8
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert compiled(doubled)(5) == 10


def test_numba_cache_dir_names_the_folder(tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            env={"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "[[0.0, 4.0], [4.0, 0.0]]\n", done.stderr
    assert list(tmp_path.rglob("condensed._fill_square*.nbc"))
