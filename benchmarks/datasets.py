"""Public data sets by name: four of scikit-learn, and those of a folder.

We know of no licence to redistribute the others, so they are read from the folder that
COTERIE_DATA names: a file ``NAME.npz`` with the arrays ``X`` and ``y``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from sklearn import datasets

from clustering_protocols.records.arrays import FloatArray, IntArray

BUNDLED: Final = ("iris", "wine", "breast_cancer", "digits")
SOURCES: Final = {
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
# Sets of the papers whose files no benchmark has had so far: the rows of these sets in
# the tables are measured on a machine that has the files.
FURTHER: Final = {
    "s2_deric": "clustering-benchmark: s-set2",
    "statlog": "UCI: Statlog (Landsat Satellite)",
    "coil100": "Columbia Object Image Library, 100 objects",
    "10x_73k": "10x Genomics: 73,233 cells, 720 genes",
}


class MissingDataError(FileNotFoundError):
    """Raised if the file of a data set is missing; the message says how to get it."""


class Dataset(NamedTuple):
    """Features (n, m), and the class (n,) of each row, which no method uses."""

    X: FloatArray
    y: IntArray


def load(name: str) -> Dataset:
    """Return features and classes of a set; MissingDataError says how to get it."""
    if name in BUNDLED:
        bunch = getattr(datasets, f"load_{name}")()
        return Dataset(bunch.data.astype(np.float64), bunch.target.astype(np.int64))
    folder = os.environ.get("COTERIE_DATA")
    path = Path(folder or ".") / f"{name}.npz"
    if not folder or not path.is_file():
        source = (SOURCES | FURTHER)[name]
        raise MissingDataError(
            f"{source}: put {path.name} into the folder that COTERIE_DATA names."
        )
    with np.load(path, allow_pickle=False) as arrays:
        return Dataset(arrays["X"].astype(np.float64), arrays["y"].astype(np.int64))


def sample(name: str, rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Return at most `rows` rows of a set with classes, drawn without replacement."""
    X, y = load(name)
    drawn = np.random.default_rng(seed).permutation(len(X))[:rows]
    return X[drawn], y[drawn]
