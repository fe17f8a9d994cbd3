"""The profile of one party's rows against pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd

from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.shared_stages.profiles.profile import own_profile
from clustering_protocols.terms.schema import Schema


def test_it_is_what_pandas_says_of_each_cluster() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(70, 9, 200), rng.integers(0, 2, 200)])
    X[rng.random(200) < 0.1, 0] = np.nan
    labels = rng.integers(-1, 3, 200)
    labels[:4] = 3  # fewer than are told alone
    labels[4:] %= 3
    labels[-9:] = -1
    fields = [
        {"name": "pulse", "type": "number"},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
    ]
    schema = Schema.model_validate({"fields": fields})
    data = MatrixSource(X, ["pulse", "sex"], gaps=True)
    found = own_profile(schema, data, labels, 1, 10)
    assert found.own
    assert found.column == 1
    assert not found.rounded
    of = {field.name: field for field in found.fields}
    frame = pd.DataFrame(X, columns=["pulse", "sex"]).groupby(labels)
    for place, cluster in enumerate(found.clusters):
        rows = frame.get_group(cluster)
        np.testing.assert_allclose(of["pulse"].mean[place], rows["pulse"].mean())
        np.testing.assert_allclose(of["pulse"].spread[place], rows["pulse"].std(ddof=0))
        assert of["pulse"].n_rows[place] == rows["pulse"].count()
        share = of["sex"].shares[place]
        assert share is not None
        np.testing.assert_allclose(share[1], rows["sex"].mean())
    assert 3 in found.others, "a cluster of four rows has no line of its own"
    assert sum(found.n_rows) == np.count_nonzero(labels >= 0)
