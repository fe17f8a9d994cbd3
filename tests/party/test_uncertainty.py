"""How unsure labels are: of k-means over rows, and of mixtures; at home alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from clustering_protocols.numerics.data_source import MatrixSource, keep_rows
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Field, Schema
from coterie import (
    CannotCluster,
    FederatedGaussianMixture,
    FederatedKMeans,
    FederatedLatentClass,
)
from party_sdk.application.outputs import Outputs

X, Y = make_blobs([200, 500, 800], 3, cluster_std=2.5, random_state=1)
TABLES = [X[0::3], X[1::3], X[2::3]]


def source(rows: Any) -> MatrixSource:
    return MatrixSource(rows, ["x0", "x1", "x2"])


def test_labels_of_k_means_are_unsure_near_the_second_centre(tmp_path: Path) -> None:
    found = FederatedKMeans(3, protocol="llf", layout="rows", random_state=0).fit(
        TABLES
    )
    result = found.session_.results[0]
    far = np.sort(found.transform(TABLES[0]), axis=1)
    unsure = result.uncertainty(source(TABLES[0]))
    np.testing.assert_allclose(unsure, far[:, 0] / far[:, 1])
    written = pd.read_csv(result.save(tmp_path / "labels.csv", unsure))
    np.testing.assert_allclose(written["uncertainty"], unsure)
    assert "uncertainty" not in pd.read_csv(result.save(tmp_path / "plain.csv"))


def test_rows_that_took_no_part_have_none() -> None:
    found = FederatedKMeans(3, protocol="llf", layout="rows", random_state=0).fit(
        TABLES
    )
    result = found.session_.results[0]
    kept = np.arange(10, len(TABLES[0]))

    def select(data: Any, labels: Any) -> Any:
        return keep_rows(data, kept), labels[kept]

    member: Any = SimpleNamespace(select_clustered=select)
    outputs = Outputs(details=True)
    unsure = outputs._uncertainty(member, result, source(TABLES[0]))
    assert unsure is not None
    assert np.isnan(unsure[:10]).all()
    assert not np.isnan(unsure[10:]).any()
    assert Outputs()._uncertainty(member, result, source(TABLES[0])) is None


def test_where_rows_are_distances_of_the_analyst_there_is_none() -> None:
    found = FederatedKMeans(3, protocol="omnifc", layout="rows", random_state=0)
    result = found.fit(TABLES).session_.results[0]
    assert result.uncertainty(source(TABLES[0])) is None


def test_a_mixture_is_unsure_by_what_the_largest_membership_leaves() -> None:
    found = FederatedGaussianMixture(
        range(2, 4), covariance_type="diag", layout="rows", choose="bic", random_state=0
    ).fit(TABLES)
    result = found.session_.results[0]
    unsure = result.uncertainty(source(TABLES[0]))
    np.testing.assert_allclose(unsure, 1 - found.memberships_[0].max(axis=1))
    assert found.bic_ == min(run for run in found.quality_["bic"])
    shares = np.vstack(found.memberships_).mean(axis=0)
    np.testing.assert_allclose(found.weights_, shares, atol=0.01)
    assert found.covariances_.shape == (found.n_clusters_, 3, 3)
    assert adjusted_rand_score(found.predict(TABLES[0]), found.labels_[0]) == 1


def test_latent_classes_take_declared_levels() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=6000)
    yes = rng.random((6000, 12)) < np.where(y[:, None] == 1, 0.8, 0.2)
    schema = Schema(
        fields=tuple(Field(name=f"q{j}", type="boolean") for j in range(12))
    )
    tables = [pd.DataFrame(part, columns=schema.names) for part in np.split(yes, 3)]
    with pytest.raises(CannotCluster, match="a dictionary, which declares the levels"):
        FederatedLatentClass(2, layout="rows").fit(tables)
    found = FederatedLatentClass(
        2, layout="rows", dictionary=schema, preparation=Preparation(), random_state=0
    ).fit(tables)
    assert adjusted_rand_score(y, np.concatenate(found.labels_)) > 0.9
    assert found.fidelity_ == 1
