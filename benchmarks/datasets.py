"""Real data sets: those of `coterie.datasets`, and further ones of the papers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from coterie import datasets
from coterie.datasets import BUNDLED, SOURCES, MissingDataset as MissingDataError

__all__ = ["BUNDLED", "SOURCES", "MissingDataError", "load", "sample"]

# Sets of the papers whose files no benchmark has had so far: the rows of these sets in
# the tables are measured on a machine that has the files.
FURTHER = {
    "s2_deric": "clustering-benchmark: s-set2",
    "statlog": "UCI: Statlog (Landsat Satellite)",
    "coil100": "Columbia Object Image Library, 100 objects",
    "10x_73k": "10x Genomics: 73,233 cells, 720 genes",
}


def load(name: str) -> datasets.Dataset:
    """Return features and classes of a set; MissingDataError says how to get it."""
    if name not in FURTHER:
        return datasets.load(name)
    folder = os.environ.get("COTERIE_DATA")
    path = Path(folder or ".") / f"{name}.npz"
    if not folder or not path.is_file():
        raise MissingDataError(
            f"{FURTHER[name]}: put {path.name} into the folder that COTERIE_DATA names."
        )
    with np.load(path, allow_pickle=False) as arrays:
        return datasets.Dataset(arrays["X"].astype(np.float64), arrays["y"])


def sample(name: str, rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Return at most `rows` rows of a set with classes, drawn without replacement."""
    X, y = load(name)
    drawn = np.random.default_rng(seed).permutation(len(X))[:rows]
    return X[drawn], y[drawn]
