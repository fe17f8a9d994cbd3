"""Real data sets, from scikit-learn or from a folder that COTERIE_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BUNDLED = frozenset({"iris", "wine", "breast_cancer", "digits"})
# Sets that scikit-learn does not bundle, and what they are called at their source.
SOURCES = {
    "heart": "UCI: Statlog (Heart)",
    "rice": "UCI: Rice (Cammeo and Osmancik)",
    "waveform": "UCI: Waveform Database Generator (Version 1)",
    "banknote": "UCI: Banknote Authentication",
    "phoneme": "ELENA, KEEL and OpenML: phoneme",
    "xclara": "clustering-benchmark: xclara",
    "s1_deric": "clustering-benchmark: s-set1",
    "terrorist": "LINQS: Terrorist Attacks",
    "pendigits": "UCI: Pen-Based Recognition of Handwritten Digits",
    "coil20": "Columbia Object Image Library, 32 × 32 pixels",
    "mnist": "MNIST, 60,000 training rows first",
    "fmnist": "Fashion-MNIST",
}


class MissingDataError(Exception):
    """A data set is not here; the text says how to get it."""


def load(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return features and classes of a set; MissingDataError says how to get it."""
    if name in BUNDLED:
        from sklearn import datasets as bundled

        bunch = getattr(bundled, f"load_{name}")()
        return bunch.data.astype(np.float64), bunch.target.astype(np.int64)
    path = folder() / f"{name}.npz"
    if not path.exists():
        raise MissingDataError(
            f"Put {name}.npz (arrays X, y) into the folder that COTERIE_DATA names "
            f"({SOURCES[name]})."
        )
    with np.load(path, allow_pickle=False) as found:
        return found["X"].astype(np.float64), found["y"].astype(np.int64)


def folder() -> Path:
    """Return where sets lie that scikit-learn does not bundle."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("COTERIE_DATA", beside))
