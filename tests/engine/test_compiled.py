"""Compiled functions: kept where a folder can be written, and working where none can."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching
from numba.core.errors import TypingError

from clustering_protocols.arrays import FloatArray
from clustering_protocols.compiled import compiled, compiled_once

SCRIPT = """
import numpy as np
from clustering_protocols.algorithms import condensed
print(condensed.square(np.array([4.0])).tolist())
"""


OTHERS = """
import sys
import numpy as np
from clustering_protocols.algorithms import condensed
assert condensed.square(np.array([4.0])).tolist() == [[0.0, 4.0], [4.0, 0.0]]
assert "scipy.linalg" not in sys.modules
import numba
A = np.arange(9.0).reshape(3, 3)
product = numba.njit(lambda A, B: A @ B)(A, A)
assert (product == A @ A).all()
determinant = numba.njit(lambda A: np.linalg.det(A))
assert abs(determinant(A + np.eye(3)) - np.linalg.det(A + np.eye(3))) < 1e-9
convolved = numba.njit(lambda a, b: np.convolve(a, b))
assert (convolved(A[0], A[1]) == np.convolve(A[0], A[1])).all()
assert "scipy.linalg" in sys.modules
"""


def test_a_first_call_needs_no_scipy_and_takes_it_from_nobody() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHERS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def doubled(x: int) -> int:
    return 2 * x


def test_without_a_folder_to_keep_it_a_function_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = compiled(doubled)
    assert kept(4) == 8
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert compiled(doubled)(5) == 10


def added(x: FloatArray, y: FloatArray, out: FloatArray) -> None:
    for i in range(len(x)):
        out[i] = x[i] + y[i]


def test_arrays_that_are_only_read_are_all_of_one_sort() -> None:
    kernel = compiled_once(2)(added)
    kept = np.arange(4.0)
    kept.flags.writeable = False
    sorts = [np.arange(4.0), kept, np.arange(8.0)[::2]]
    for x, y in itertools.product(sorts, sorts):
        out = np.empty(4)
        kernel(x, y, out)
        assert out.tolist() == (x + y).tolist()
    assert len(kernel.__wrapped__.signatures) == 1  # type: ignore[attr-defined]  # numba has no types
    assert [each.flags.writeable for each in sorts] == [True, False, True]
    with pytest.raises(TypingError, match="Cannot modify readonly"):
        compiled_once(3)(added)(*sorts)


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
