"""What protocols say of the size of a session, against the messages of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from clustering_protocols import catalogue, simulation
from clustering_protocols.contract import Params
from clustering_protocols.contract.sizing import Extent, Needs
from clustering_protocols.terms.terms import Layout

ROWS, FEATURES = 1200, 24
SLACK = 0.05
ACROSS, BESIDE, BOTH = Layout.lattice(4, 1), Layout.lattice(1, 4), Layout.lattice(2, 2)


class Case(NamedTuple):
    protocol: str
    layout: Layout
    values: dict[str, Any]


CASES = [
    Case("dc", ACROSS, {}),
    Case("dc", BESIDE, {"dimensions": "all"}),
    Case("dc", BOTH, {}),
    Case("dc", ACROSS, {"anchor": {"kind": "smote"}}),
    Case("dc", ACROSS, {"anchor": {"kind": "uniform"}, "scaling": "none"}),
    Case("pqmds", BESIDE, {}),
    Case("pqmds", BESIDE, {"sub_dim": 3, "coordinates": 3}),
    Case("omnifc", ACROSS, {}),
    Case("omnifc", ACROSS, {"distances": "landmarks"}),
    Case("omnifc", Layout.lattice(5), {"segments": 2, "hide_segments": False}),
    Case("omnifc", ACROSS, {"scaling": "minmax", "distances": "landmarks"}),
    Case("omnifc", ACROSS, {"algorithm": "fuzzy_cmeans", "distances": "landmarks"}),
    Case("llf", ACROSS, {}),
    Case("llf", ACROSS, {"n_init": 4}),
    Case("llf", ACROSS, {"init": "random_party"}),
    Case("llf", ACROSS, {"algorithm": "fuzzy_cmeans", "small_cohorts": "allow"}),
    Case("llf", BESIDE, {}),
    Case("llf", BESIDE, {"algorithm": "fuzzy_cmeans"}),
    Case("fccm", BESIDE, {"n_init": 1, "max_iter": 6}),
    Case("fccm", BESIDE, {"n_init": 1, "max_iter": 6, "normalisation": "site"}),
]


def name(case: Case) -> str:
    shape = f"{case.layout.n_row_groups}x{case.layout.n_column_groups}"
    return "-".join([case.protocol, shape, *map(str, case.values.values())])


def table() -> Any:
    rng = np.random.default_rng(0)
    middles = rng.uniform(0, 1, (5, FEATURES))
    X = middles[rng.integers(5, size=ROWS)] + rng.normal(0, 0.05, (ROWS, FEATURES))
    return np.clip(X, 0.01, 0.99)


def session(
    case: Case,
) -> tuple[Params, simulation.Session, simulation.SimulationResult]:
    values = {"n_clusters": 5, **case.values}
    params = catalogue.parse_params(case.protocol, values)
    parts = simulation.split(table(), case.layout, 0)
    whole = simulation.Session(params, case.layout, parts.data, 0)
    return params, whole, whole.to_the_end()


def needs_of(params: Params, layout: Layout, updates: int | None = None) -> Needs:
    extent = Extent(rows=ROWS, features=FEATURES, layout=layout, updates=updates)
    found = catalogue.protocol_of(params).sizes().needs(params, extent)
    assert found is not None
    return found


def within(said: float, seen: float) -> None:
    assert said == pytest.approx(seen, rel=SLACK)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_session_sends_and_keeps_what_its_protocol_says(case: Case) -> None:
    params, whole, ended = session(case)
    one, two = (needs_of(params, case.layout, updates) for updates in (1, 2))
    more = ended.rounds - one.rounds
    said = needs_of(params, case.layout, 1 + more)
    assert more == 0 or two.rounds > one.rounds  # else the number of rounds is known
    assert said.rounds == ended.rounds
    within(said.sent, max(ended.costs[slot].sent_bytes for slot in case.layout.names))
    within(said.kept, sum(map(len, whole.stored)))


@pytest.mark.parametrize("case", CASES, ids=name)
def test_without_a_number_of_updates_the_most_are_counted(case: Case) -> None:
    params = catalogue.parse_params(case.protocol, {"n_clusters": 5, **case.values})
    most, few = needs_of(params, case.layout), needs_of(params, case.layout, 2)
    assert most.rounds >= few.rounds
    assert most.sent >= few.sent
    assert most.kept >= few.kept


def test_a_protocol_need_not_say() -> None:
    sizes = catalogue.protocol("dummy").sizes()
    params = catalogue.parse_params("dummy", {})
    extent = Extent(rows=ROWS, features=FEATURES, layout=ACROSS)
    assert sizes.needs(params, extent) is None
    assert sizes.most_rows(params, FEATURES) is None
    assert sizes.beyond(params) == ""


def test_every_protocol_that_is_advised_says() -> None:
    said = {case.protocol for case in CASES}
    assert said == {
        name for name, known in catalogue.catalogue().items() if known.methods
    }


def test_the_stated_row_limit_of_omnifc_is_the_enforced_one() -> None:
    sizes = catalogue.protocol("omnifc").sizes()
    params = catalogue.parse_params("omnifc", {"n_clusters": 5, "max_rows": 15_000})
    most = sizes.most_rows(params, FEATURES)
    assert most == 15_000
    tight = catalogue.parse_params(
        "omnifc", {"n_clusters": 5, "memory_limit": 1 << 29, "max_rows": 8_000}
    )
    few = sizes.most_rows(tight, FEATURES)
    assert few is not None
    assert few < 8_000
    extent = Extent(rows=few, features=FEATURES, layout=ACROSS)
    for rows, fits in ((few, True), (few + 1, False)):
        there = Extent(rows=rows, features=FEATURES, layout=ACROSS)
        needs = sizes.needs(tight, there)
        assert needs is not None
        assert (needs.analyst_memory <= 1 << 29) == fits
    assert extent.party_rows == -(-few // 4)
