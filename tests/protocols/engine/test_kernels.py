"""Kernels in C give the same bits as their counterparts in numpy."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import squareform

from clustering_protocols.algorithms import (
    condensed_distances as condensed,
    fuzzy_cmeans,
    kmedoids,
    row_kernels as rows,
)
from clustering_protocols.numerics import kernels
from clustering_protocols.protocols.dc import maths as dc
from clustering_protocols.protocols.llf import kernels as llf
from clustering_protocols.protocols.omnifc import maths as omnifc
from clustering_protocols.protocols.pqmds import maths as pqmds
from clustering_protocols.quality import block_sums
from clustering_protocols.secrecy import field
from clustering_protocols.secrecy.prime import P

pytestmark = pytest.mark.skipif(not kernels.IS_BUILT, reason="there is no C compiler")

Call = tuple[Callable[..., Any], list[Any]]


def calls(n: int, F: int, k: int) -> Iterator[Call]:
    """Yield every kernel with arguments: n rows of F columns, k clusters."""
    rng = np.random.default_rng(n)
    X = 10 * rng.normal(size=(n, F))
    affine = rng.normal(size=F), rng.uniform(0.1, 2.0, size=F)
    V = 5 * rng.normal(size=(k, F))
    V[-1] = (X[0] - affine[0]) * affine[1]  # a row that lies on a centroid
    units = 2.0 ** rng.integers(10, 20, size=F)
    labels = rng.integers(k, size=n)
    counts = np.bincount(labels, minlength=k)
    whole, number = np.zeros((k, F), np.int64), np.zeros(k, np.int64)
    within = np.array([2.0**10, 2.0**20]), np.zeros(2, np.int64)
    yield rows._squared_distances, [X, V, np.empty((n, k))]
    yield rows.nearest_sums, [X, *affine, V, units, whole, number, *within, 1e-9]
    yield rows.add_rows, [X, labels, *affine, units, whole, number]
    yield rows.update_nearest, [X, *affine, V, 3, labels, np.full(n, np.inf), 1e-9]
    yield rows.absolute_sums, [X, affine[0], units, np.zeros(F, np.int64)]
    yield rows.reach, [X, affine[0], np.array([np.nan, *np.ones(F - 1)])]
    for fuzzifier in (2.0, 1.3, 3.0):
        sums = [units, 2.0**30, np.ones((k, F)), np.ones(k)]
        yield llf.fuzzy_sums, [X, *affine, V, fuzzifier, *sums]
    for exponent in (0.0, 1.0, 0.7):
        written = labels, np.empty((n, k)), np.empty((n, k))
        yield llf.assign, [X, *affine, V, exponent, *written]
    places, words = rng.permutation(n), np.zeros((n, k), np.uint64)
    for unit in (2.0**20, 2.0**60):  # of the second most words are too large
        yield llf.distance_units, [X, *affine, V, unit, places, words]
    yield block_sums._sum_by_label, [X, *affine, labels, V.copy()]
    around = [V, labels, counts, np.ones(k), np.ones(k)]
    yield block_sums._sum_around, [X, *affine, *around]
    yield dc.add_products, [X, rng.normal(size=(F, 5)), 2, rng.normal(size=(n, 8))]
    columns = np.ascontiguousarray(V.T)
    for fuzziness in (2.0, 1.1):
        yield fuzzy_cmeans._fill_degrees, [X, columns, fuzziness, np.empty((n, k))]
        sums = [np.ones((k, F)), np.ones(k)]
        yield fuzzy_cmeans._add_weighted, [X, columns, fuzziness, *sums]
    yield pqmds._draw_starts, [X.T, rng.uniform(size=k), np.zeros(k, np.int64)]


def calls_of_pairs(n: int, k: int) -> Iterator[Call]:
    """Yield every kernel of condensed distances, some of them equal."""
    rng = np.random.default_rng(n)
    away = np.round(rng.uniform(1, 9, size=n * (n - 1) // 2), 1)
    inside = np.arange(n) % 3 == 0
    nearest = np.zeros((n, k), np.int64), np.zeros((n, k))
    for i in (0, n // 2, n - 1):
        yield condensed.read_row, [away, n, i, np.empty(n)]
    yield condensed._fill_nearest, [away, n, *nearest]
    yield condensed._find_outside, [away, inside, np.zeros(2, np.int64)]
    medoids = rng.choice(n, k, replace=False)
    start = squareform(away)[medoids]
    yield kmedoids._improve, [away, medoids, start, 10]


def calls_of_residues() -> Iterator[Call]:
    """Yield every kernel of residues, the least and the largest among them."""
    rng = np.random.default_rng(0)
    total, *parts = rng.integers(P, size=(5, 1001), dtype=np.uint64)
    parts[0][:9] = P - 1
    weights = np.array([P - 1, 0, 1, 1 << 40], np.uint64)
    unsettled = np.array([0, P - 1, P, P + 8], np.uint64)
    yield field.add_multiples, [total, weights, *parts]
    yield field.add, [total, parts[0]]
    yield field.subtract, [total, parts[0]]
    yield field.canonicalise, [unsettled]
    values = rng.integers(-P, P, size=1001)
    out = np.zeros(-(-1001 // 64), np.uint64)
    yield field.weighted_blocks, [values, parts[1][:64], out]
    Z = rng.integers(P, size=(8, 300), dtype=np.uint64)
    Z[:, :2] = [[0, P - 1]]
    for first, last in ((0, 300), (16, 37)):
        size = sum(300 - i - 1 for i in range(first, last))
        yield omnifc._fill_distances, [Z, first, last, np.zeros(size, np.uint64)]


def written(function: Callable[..., Any], given: list[Any]) -> list[Any]:
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
    return [function(*copies), *copies]


@pytest.mark.parametrize(
    "made",
    [
        lambda: calls(5000, 16, 7),
        lambda: calls(300, 7, 3),
        lambda: calls(9, 1, 1),
        lambda: calls_of_pairs(120, 5),
        lambda: calls_of_pairs(7, 1),
        calls_of_residues,
    ],
    ids=["many rows", "odd", "few rows", "pairs", "few pairs", "residues"],
)
def test_c_and_numpy_give_the_same_bits(made: Callable[[], Iterator[Call]]) -> None:
    for kernel, given in made():
        in_c = written(kernel, given)
        in_numpy = written(kernel.__wrapped__, given)  # type: ignore[attr-defined]
        for one, other in zip(in_c, in_numpy, strict=True):
            where = kernel.__name__
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), where


def test_only_what_is_read_may_have_gaps_or_another_type() -> None:
    X, G = np.arange(12).reshape(4, 3), np.eye(3)[:, ::-1]
    image = np.zeros((4, 3))
    dc.add_products(X, G, 0, image)
    assert np.array_equal(image, X @ G)
    for wrong in (image[:, ::-1], image.astype(np.float32)):
        with pytest.raises(TypeError, match="contiguous arrays of its own dtype"):
            dc.add_products(X, G, 0, wrong)
    image.flags.writeable = False
    with pytest.raises(TypeError):
        dc.add_products(X, G, 0, image)


WITHOUT = """
import ctypes
def missing(*names, **more): raise OSError
ctypes.CDLL = missing
import numpy as np
from clustering_protocols.numerics import kernels
assert not kernels.IS_BUILT
from clustering_protocols.algorithms.row_kernels import squared_distances
assert squared_distances(np.eye(2), np.eye(2)).tolist() == [[0, 2], [2, 0]]
from party_sdk.analyst_client.diagnosis import check_home
from pathlib import Path
[found] = [each for each in check_home(Path("/none")) if each.check == "kernels"]
assert found.is_ok and "gcc" in found.remedy
"""


def test_numpy_computes_where_there_is_no_library_and_doctor_says_so() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], check=True)
