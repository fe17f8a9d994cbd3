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

from clustering_protocols.numerics.compilation import compile_kernel, compile_once
from clustering_protocols.records.arrays import FloatArray

SCRIPT = """
import numpy as np
from clustering_protocols.algorithms import condensed_distances
print(condensed_distances.square(np.array([4.0])).tolist())
"""


OTHERS = """
import sys
import numpy as np
from clustering_protocols.algorithms import condensed_distances
assert condensed_distances.square(np.array([4.0])).tolist() == [[0.0, 4.0], [4.0, 0.0]]
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


def test_a_function_compiles_without_a_cache_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = compile_kernel(doubled)
    assert kept(4) == 8
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert compile_kernel(doubled)(5) == 10


def added(x: FloatArray, y: FloatArray, out: FloatArray) -> None:
    for i in range(len(x)):
        out[i] = x[i] + y[i]


def test_arrays_that_are_only_read_are_all_of_one_sort() -> None:
    kernel = compile_once(2)(added)
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
        compile_once(3)(added)(*sorts)


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
    assert list(tmp_path.rglob("condensed_distances._fill_square*.nbc"))
