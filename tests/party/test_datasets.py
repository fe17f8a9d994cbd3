"""Tables dealt out as institutions hold them, and simulations that a manifest repeats."""

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.terms import read_terms
from coterie import FederatedKMeans, LosslessFederated, datasets, simulate
from party_sdk.results.manifests import digest_matrix

X, CLASSES = load_iris(return_X_y=True)


def test_a_manifest_plays_a_simulation_again() -> None:
    params = LosslessFederated(n_clusters=3)
    first = simulate(params, X, (3, 1), seed=5, manifest=True).manifest
    text = json.dumps(first, allow_nan=False)
    terms = read_terms(json.dumps(first["terms"]).encode())
    again = simulate(
        catalogue.parse_params(terms.protocol.name, terms.protocol.params),
        X,
        terms.layout,
        seed=first["seed"],
        manifest=True,
    )
    assert json.dumps(again.manifest) == text
    table = first["tables"]["r1c1"]
    assert (table["rows"], len(table["columns"])) == (50, 4)
    held = again.whole.X[again.whole.labels >= 0]
    assert first["result"]["labels_sha256"] == digest_matrix(again.whole.labels)
    assert first["versions"]["numpy"] == np.__version__
    other = held + np.eye(150, 4)
    changed = simulate(params, other, (3, 1), seed=5, manifest=True).manifest
    assert changed["tables"] != first["tables"]
    assert changed["terms_sha256"] == first["terms_sha256"]


def test_a_digest_tells_shapes_and_values_apart() -> None:
    flat = np.arange(6.0)
    shapes = {digest_matrix(flat.reshape(shape)) for shape in ((2, 3), (3, 2))}
    assert len(shapes) == 2
    odd = np.array([np.nan, 1.0])
    odd.view(np.uint64)[0] |= 1
    assert digest_matrix(odd) == digest_matrix(np.array([np.nan, 1.0]))
    assert digest_matrix(odd[::-1]) != digest_matrix(odd)


@pytest.mark.parametrize("layout", [(3, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize(
    "kind",
    [np.asarray, pd.DataFrame, pl.DataFrame, csr_matrix],
    ids=["numpy", "pandas", "polars", "scipy"],
)
def test_every_row_and_column_is_dealt_out_once(layout: Any, kind: Any) -> None:
    dealt = datasets.deal(kind(X), layout, random_state=3)
    again = np.full(X.shape, np.nan)
    for table, rows, columns in zip(
        dealt.tables, dealt.rows, dealt.columns, strict=True
    ):
        held = table.toarray() if kind is csr_matrix else np.asarray(table)
        assert np.isnan(again[np.ix_(rows, columns)]).all()
        again[np.ix_(rows, columns)] = held
    assert_array_equal(again, X)
    sizes = [len(rows) for rows in dealt.rows]
    assert max(sizes) - min(sizes) <= 1


def test_classes_go_to_institutions_in_other_shares() -> None:
    dealt = datasets.deal(X, (3, 1), classes=CLASSES, concentration=0.1, fewest=9)
    shares = [np.bincount(CLASSES[rows], minlength=3) for rows in dealt.rows]
    assert_array_equal(np.sum(shares, axis=0), [50, 50, 50])
    assert min(map(sum, shares)) >= 9
    assert max(share.max() / share.sum() for share in shares) > 0.9
    even = datasets.deal(X, (3, 1), classes=CLASSES, concentration=1e6)
    counts = [np.bincount(CLASSES[rows], minlength=3) for rows in even.rows]
    assert np.abs(np.subtract(counts, 50 / 3)).max() < 2


def test_what_is_dealt_out_is_fitted_and_drawn_again() -> None:
    table = pd.DataFrame(X, columns=list("abcd"))
    first, second = (
        datasets.deal(table, (3, 1), random_state=np.random.default_rng(1))
        for _ in range(2)
    )
    fitted = FederatedKMeans(3, protocol="llf", layout=first.layout, random_state=0)
    assert len(fitted.fit(first.tables).labels_) == 3
    assert_array_equal(first.rows[0], second.rows[0])
    other = datasets.deal(table, (3, 1), random_state=2)
    assert set(other.rows[0]) != set(first.rows[0])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layout": (200, 1)}, "150 rows are too few: 400 are needed"),
        ({"layout": (1, 5)}, "4 columns are too few"),
        ({"concentration": 0.5}, "classes and concentration together"),
        ({"classes": CLASSES}, "classes and concentration together"),
        (
            {"classes": CLASSES[:9], "concentration": 1.0},
            "each of the 150 rows needs a class",
        ),
        ({"classes": CLASSES, "concentration": 0.0}, "a number above 0"),
        ({"classes": [np.nan, *CLASSES[1:]], "concentration": 1.0}, "have no class"),
        *(
            ({"classes": ["a", missing] * 75, "concentration": 1.0}, "have no class")
            for missing in (None, pd.NA, pd.NaT)
        ),
        (
            {
                "classes": pd.Series(["a", pd.NA] * 75, dtype="string"),
                "concentration": 1,
            },
            "have no class",
        ),
        ({"layout": (4, 1), "classes": CLASSES, "concentration": 1e-9}, "10,000 draws"),
        ({"table": X[0]}, r"the shape \(4,\)"),
    ],
)
def test_what_cannot_be_dealt_out_is_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameters, match=said):
        datasets.deal(**{"table": X, "layout": (2, 1), **given})
