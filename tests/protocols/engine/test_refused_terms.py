"""Terms that a protocol cannot follow open no session, and the refusal says why."""

from typing import Any

import pytest

from clustering_protocols import session_terms
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.terms.terms import Layout, SessionRequest

ROWS, COLUMNS = (3, 1), (1, 3)
GIVEN = {"init": "given", "initial_centroids": [[1, 2], [3, 4]]}
FAR = {"init": "given", "initial_centroids": [[1e101, 2], [3, 4]]}
ECDH = {"alignment": {"method": "ecdh"}}
PREDICTOR = {"predictor": True}
LANDMARKS = {"distances": "landmarks"}
NMF = {"algorithm": "nmf", "features": "distance_rows"}
CASES: dict[str, list[tuple[tuple[int, int], dict[str, Any], str]]] = {
    "llf": [
        ((2, 2), {}, "split rows or split columns"),
        ((2, 1), {}, "needs 3 parties"),
        ((1, 2), {}, "needs 3 parties"),
        ((1, 1), {"allow_two_parties": True}, "needs 2 parties"),
        (ROWS, {"quorum": 2}, "quorum must lie"),
        (ROWS, {"quorum": 4}, "quorum must lie"),
        (COLUMNS, {"quorum": 3}, "every party is needed"),
        (COLUMNS, {"init": "random_party"}, "split rows"),
        (ROWS, {"init": "random_rows"}, "split columns"),
        (ROWS, {"init": "given"}, "need each other"),
        (ROWS, {"initial_centroids": [[1, 2], [3, 4]]}, "need each other"),
        (ROWS, {**GIVEN, "initial_centroids": [[1, 2]]}, "1 rows for 2 clusters"),
        (ROWS, FAR, r"between -1e\+100 and 1e\+100"),
        (ROWS, {"output": "memberships"}, "fuzzy_cmeans"),
        (ROWS, {"fuzzifier": 1.0}, "fuzzifier"),
        (ROWS, {"n_clusters": 0}, "n_clusters"),
        (ROWS, {"tol": float("nan")}, "tol"),
        (ROWS, {"fuzifier": 2}, "fuzifier"),
        (ROWS, ECDH, "needs a row group of two"),
    ],
    "dc": [
        (ROWS, ECDH, "needs a row group of two"),
        ((1, 1), ECDH, "needs a row group of two"),
        ((2, 2), PREDICTOR, "another round"),
        ((2, 1), {**PREDICTOR, "algorithm": "spectral"}, "not in its graph"),
    ],
    "fccm": [
        ((1, 2), {}, "needs 3 sites"),
        ((1, 1), {}, "needs 3 sites"),
        (ROWS, {}, "split columns"),
        ((2, 3), {}, "split columns"),
    ],
    "mixture": [
        ((2, 1), {}, "needs 3 parties"),
        ((3, 2), {}, "needs split rows"),
        (ROWS, {"init": "given"}, "need each other"),
        (ROWS, {**GIVEN, "initial_centroids": [[1, 2]]}, "1 rows for 2 clusters"),
        (ROWS, FAR, r"between -1e\+100 and 1e\+100"),
    ],
    "omnifc": [
        ((3, 2), {}, "column groups"),
        ((2, 1), {}, "noise = 1 needs 3"),
        (
            *((5, 1), {"segments": 2, "noise": 2}),
            "need 7 .* has 5. 5 parties suffice for segments . noise of at most 3",
        ),
        (ROWS, {"max_rows": 1_000_000}, r"takes 4\d{12} bytes .* max_rows = 2\d{4}"),
        (ROWS, {"algorithm": "dbscan"}, "n_clusters"),
        (ROWS, {"algorithm": "kmeans", "n_clusters": None}, "n_clusters"),
        (ROWS, {"algorithm": "nmf"}, "distance_rows"),
        (ROWS, {"bits": 26}, "bits"),
        (ROWS, {"segments": 0}, "segments"),
        (ROWS, {"scaling": "standard", "ranges": "declared"}, "Ranges 'declared'"),
        (ROWS, {"scaling": "unit_norm", "ranges": "declared"}, "Ranges 'declared'"),
        (ROWS, {**LANDMARKS, "features": "distance_rows"}, "need distances 'all'"),
        (ROWS, {**LANDMARKS, "algorithm": "hdbscan"}, "leave out n_clusters"),
        (
            *(ROWS, {**NMF, "algorithm": "dbscan", "n_clusters": None}),
            "needs features 'embedding'",
        ),
    ],
    "pqmds": [
        ((1, 1), ECDH, "needs a row group of two"),
        *(
            ((1, 2), {"sub_dim": 2, "coordinates": each}, "oordinates")
            for each in (0, 3, 65)
        ),
        *(
            ((1, 2), {"privacy": {"mechanism": mechanism, **each}}, "privacy")
            for mechanism, each in (
                ("gaussian", {}),
                ("laplace", {"epsilon": 0.0}),
            )
        ),
    ],
}


@pytest.mark.parametrize(
    ("protocol", "cells", "params", "why"),
    [(protocol, *case) for protocol, cases in CASES.items() for case in cases],
)
def test_terms_that_a_protocol_cannot_follow_are_refused(
    protocol: str, cells: tuple[int, int], params: dict[str, Any], why: str
) -> None:
    values = {"n_clusters": 2, **params}
    request = SessionRequest(
        protocol={"name": protocol, "params": values},
        layout=Layout.lattice(*cells),
        seed=1,
    )
    with pytest.raises(InvalidParameters, match=why):
        session_terms.draw_up_terms("s", request)
