"""Our own attacks on `dc`: they succeed where we say so, and fail where we say so."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from support.attacks import (
    Upload,
    correlations,
    mix,
    principal,
    rotate_back,
    unmix,
    uploads,
)

from clustering_protocols import simulation
from clustering_protocols.protocols.dc import Anchor, DataCollaboration
from clustering_protocols.terms.terms import Layout

SETS = {"wine": load_wine, "breast cancer": load_breast_cancer}
every_set = pytest.mark.parametrize("name", SETS)
SEED = 0


def upload_of(name: str, **params: Any) -> Upload:
    X = SETS[name]().data
    parts = simulation.split(X, Layout.lattice(2, 1), SEED)
    given = DataCollaboration(n_clusters=2, **params)
    return uploads(given, parts, SEED)["r1c1"]


@every_set
def test_uniform_anchors_are_unmixed_by_source_separation(name: str) -> None:
    upload = upload_of(name, anchor=Anchor(kind="uniform", n_rows=3000))
    found = correlations(unmix(upload, SEED), upload.truth)
    assert np.median(found) >= 0.95
    assert found.max() >= 0.99
    assert np.mean(found >= 0.9) >= 0.9


@every_set
@pytest.mark.parametrize("kind", ["gaussian", "rotated"])
@pytest.mark.parametrize("n_rows", [None, 2000])
@pytest.mark.quick(3)
def test_source_separation_does_no_better_than_a_guess(
    name: str, kind: Any, n_rows: int | None
) -> None:
    upload = upload_of(name, anchor=Anchor(kind=kind, n_rows=n_rows))
    found = correlations(unmix(upload, SEED), upload.truth).mean()
    guesses = [correlations(mix(upload, s), upload.truth).mean() for s in range(10)]
    assert found <= np.mean(guesses) + 0.10


@every_set
@pytest.mark.parametrize("scaling", ["shared", "center", "none"])
@pytest.mark.parametrize("kind", ["gaussian", "rotated"])
def test_the_covariance_of_the_anchors_shows_no_feature(
    name: str, scaling: Any, kind: Any
) -> None:
    """No more than the principal components of the rows do, which need no anchors."""
    upload = upload_of(name, scaling=scaling, anchor=Anchor(kind=kind))
    found = correlations(rotate_back(upload), upload.truth)
    known = correlations(principal(upload), upload.truth)
    assert np.mean(found > 0.95) <= np.mean(known > 0.95) + 0.1
    assert np.median(found) <= np.median(known) + 0.2
