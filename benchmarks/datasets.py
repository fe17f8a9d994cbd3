"""Real data sets of `coterie.datasets`; without COTERIE_DATA from a folder beside us."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from coterie import datasets
from coterie.datasets import BUNDLED, SOURCES, MissingDataset as MissingDataError

__all__ = ["BUNDLED", "SOURCES", "MissingDataError", "folder", "load", "sample"]


def load(name: str) -> datasets.Dataset:
    """Return features and classes of a set; MissingDataError says how to get it."""
    return datasets.load(name, folder())


def folder() -> Path:
    """Return where sets lie that scikit-learn does not bundle."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("COTERIE_DATA", beside))


def sample(name: str, rows: int) -> tuple[Any, Any]:
    """Return at most so many rows of a set, drawn without replacement."""
    X, y = load(name)
    drawn = np.random.default_rng(0).permutation(len(X))[:rows]
    return X[drawn], y[drawn]
