"""Protocols' estimates of upload sizes agree with the messages of real sessions."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from clustering_protocols import catalogue, simulation
from clustering_protocols.contract import Params
from clustering_protocols.contract.sizing import Extent
from clustering_protocols.terms.terms import Layout

ROWS, FEATURES = 1200, 24
SETUP = 250_000
ACROSS, BESIDE, BOTH = Layout.lattice(4, 1), Layout.lattice(1, 4), Layout.lattice(2, 2)


class Case(NamedTuple):
    protocol: str
    layout: Layout
    values: dict[str, Any]


SOLVABLE: dict[str, Any] = {"n_init": 1, "max_iter": 6, "small_cohorts": "allow"}
CASES = [
    Case("dc", ACROSS, {}),
    Case("dc", BESIDE, {"dimensions": "all"}),
    Case("dc", BOTH, {}),
    Case("dc", ACROSS, {"anchor": {"kind": "uniform"}, "scaling": "none"}),
    Case("pqmds", BESIDE, {}),
    Case("pqmds", BESIDE, {"sub_dim": 3, "coordinates": 3}),
    Case("omnifc", ACROSS, {}),
    Case("omnifc", ACROSS, {"distances": "landmarks"}),
    Case("omnifc", Layout.lattice(5), {"segments": 2, "hide_segments": False}),
    Case("omnifc", ACROSS, {"scaling": "minmax", "distances": "landmarks"}),
    Case("omnifc", ACROSS, {"algorithm": "fuzzy_cmeans", "distances": "landmarks"}),
    Case("llf", ACROSS, {}),
    Case("llf", ACROSS, {"init": "random_party"}),
    Case("llf", ACROSS, {"algorithm": "fuzzy_cmeans", "small_cohorts": "allow"}),
    Case("llf", BESIDE, {}),
    Case("llf", BESIDE, {"algorithm": "fuzzy_cmeans"}),
    Case("mixture", ACROSS, {"covariance_type": "diag"}),
    Case("fccm", BESIDE, SOLVABLE),
]


def name(case: Case) -> str:
    shape = f"{case.layout.n_row_groups}x{case.layout.n_column_groups}"
    return "-".join([case.protocol, shape, *map(str, case.values.values())])


def table() -> Any:
    rng = np.random.default_rng(0)
    middles = rng.uniform(0, 1, (5, FEATURES))
    X = middles[rng.integers(5, size=ROWS)] + rng.normal(0, 0.05, (ROWS, FEATURES))
    return np.clip(X, 0.01, 0.99)


def session(case: Case) -> tuple[Params, simulation.SimulationResult]:
    values = {"n_clusters": 5, **case.values}
    params = catalogue.parse_params(case.protocol, values)
    parts = simulation.split(table(), case.layout, 0)
    whole = simulation.Session(params, case.layout, parts.data, 0)
    return params, whole.run_to_end()


@pytest.mark.parametrize("case", CASES, ids=name)
@pytest.mark.quick(8)
def test_a_party_sends_about_what_its_protocol_says(case: Case) -> None:
    params, ended = session(case)
    extent = Extent(rows=ROWS, features=FEATURES, layout=case.layout)
    upload = catalogue.find_protocol(params).sizing().upload_bytes(params, extent)
    sent = max(ended.costs[slot].sent_bytes for slot in case.layout.names)
    if case.protocol in {"llf", "fccm", "mixture"}:
        assert sent <= upload + SETUP  # as many updates as the parameters allow
    else:
        assert upload <= sent <= upload + SETUP


def test_every_protocol_that_is_advised_says() -> None:
    said = {case.protocol for case in CASES}
    assert said == {
        name for name, known in catalogue.catalogue().items() if known.methods
    }
