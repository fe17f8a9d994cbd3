"""Rounded numbers show the axes of rows up to a motion, and the declaration says it.

Numbers that are given to a last digit lie on a lattice whose axes are the fields, and so
do differences of rows. A motion turns the lattice: a short basis of it (Lenstra, Lenstra
and Lovász) shows the axes. It takes some d + 30 rows; no row has to be known.
"""

from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray
from support.lattices import reduced

from benchmarks import datasets
from clustering_protocols import catalogue
from clustering_protocols.contract.disclosures import Kind, Reader, kinds_read_by
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.terms import Layout

HIT: Final = 0.999
_SCALES: Final = (1e3, 1e4, 1e5)
_EXTRA: Final = 30
_SHORTEST: Final = 2e-4
Matrix = NDArray[np.float64]


def find_axes(Z: Matrix, seconds: float, seed: int = 0) -> Matrix:
    """Return candidates (c, d) for the axes of the lattice on which rows lie.

    Z: float64 (n, d); rows up to a motion.
    seconds: how long to search at most, by each of three scales.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(Z), min(len(Z), Z.shape[1] + _EXTRA + 1), replace=False)
    V = Z[drawn[1:]] - Z[drawn[0]]
    found = [np.empty((0, Z.shape[1]))]
    for scale in _SCALES:
        # whole combinations of differences; small factors are preferred
        together = np.hstack([scale * V, np.eye(len(V))])
        short = reduced(together, seconds)[:, : Z.shape[1]] / scale
        found.append(short[np.linalg.norm(short, axis=1) > _SHORTEST])
    return np.concatenate(found)


def matched(axes: Matrix, Z: Matrix, X: Matrix) -> dict[int, float]:
    best: dict[int, float] = {}
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    for axis in axes:
        along = (Z - Z.mean(axis=0)) @ axis
        r = np.abs(centred.T @ along) / len(X) / along.std()
        field = int(np.argmax(r))
        if r[field] >= HIT:
            best[field] = max(best.get(field, 0.0), float(r[field]))
    return best


def turned(X: Matrix, seed: int) -> Matrix:
    rng = np.random.default_rng(seed)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    R = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    return scaled @ R + rng.normal(size=X.shape) * 2.0**-22


@pytest.mark.threat(157)
@pytest.mark.parametrize("name", ["iris", "wine"])
@pytest.mark.quick(1)
def test_rounded_numbers_show_their_axes_and_the_table_says_so(name: str) -> None:
    rows = datasets.sample(name, 200)[0]
    Z = turned(rows, 0)
    assert set(matched(find_axes(Z, 20), Z, rows)) == set(range(rows.shape[1]))
    for params, layout in (
        (OmniFC(n_clusters=3), Layout.lattice(3)),
        (LosslessFederated(n_clusters=3), Layout.lattice(1, 3)),
    ):
        shown = catalogue.find_protocol(params).disclosures(params, layout)
        assert Kind.VALUES in kinds_read_by(shown, Reader.OUTSIDE)
