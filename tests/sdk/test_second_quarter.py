"""A second quarter at the same homes: a variable less, another k, a party less."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.analyst_process import House
from support.in_process import in_process

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout
from party_sdk.tables import open_table

SIZES = (90, 66, 48)
CENTRES = np.array([[20.0, -20.0, 9.0], [0.0, 20.0, -9.0], [-20.0, -5.0, 0.0]])
LAYOUT = Layout.lattice(4)
LLF = LosslessFederated(n_clusters=3, small_cohorts="allow")


def study(seed: int = 0, first: int = 0) -> list[pd.DataFrame]:
    """Four parties' tables; ids count from ``first``, so that quarters may share some."""
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(9).permutation(np.repeat([0, 1, 2], SIZES))
    X = CENTRES[truth] + rng.normal(size=(len(truth), 3))
    frame = pd.DataFrame(X.round(3), columns=["a", "b", "c"])
    frame.insert(0, "id", [f"p{first + n}" for n in range(len(frame))])
    return [frame[n::4] for n in range(4)]


@contextmanager
def opened(folder: Path) -> Iterator[House]:
    """An analyst and homes over a folder, new or not."""
    with in_process(folder / "analyst", driven=True) as api:
        yield House(api, folder, fixed=False)


class Spring(NamedTuple):
    """The first quarter: each row's label, and what analyst and homes keep."""

    labels: dict[str, int]
    folder: Path


@pytest.fixture(scope="module")
def spring(tmp_path_factory: pytest.TempPathFactory) -> Spring:
    folder = tmp_path_factory.mktemp("spring")
    schema = numbers(("a", "b", "c"), -60, 60)
    with opened(folder) as house:
        session = house.open("spring", LLF, LAYOUT, dictionary=[schema])
        return Spring(run(house, session, study()), folder)


@pytest.fixture
def house(spring: Spring, tmp_path: Path) -> Iterator[House]:
    """The same homes after the first quarter."""
    shutil.copytree(spring.folder, tmp_path, dirs_exist_ok=True)
    with opened(tmp_path) as house:
        yield house


class Later(NamedTuple):
    """How a later quarter differs: its columns, parties and parameters."""

    columns: tuple[str, ...] = ("a", "b", "c")
    n_parties: int = 4
    params: Any = LLF

    def open(self, house: House) -> Any:
        layout, schema = Layout.lattice(self.n_parties), numbers(self.columns, -60, 60)
        return house.open("summer", self.params, layout, dictionary=[schema])


def run(house: House, session: Any, tables: list[pd.DataFrame]) -> dict[str, int]:
    """Run a session; return the label of each row, by its id."""
    schema = session.terms.dictionary[0]
    columns = ["id", *schema.names]
    sources = [open_table(t[columns], id_column="id", schema=schema) for t in tables]
    results = house.run(session, sources)
    return {
        row: int(label)
        for table, result in zip(tables, results.values(), strict=True)
        for row, label in zip(table["id"], result.labels, strict=True)
    }


TWO = LosslessFederated(n_clusters=2, small_cohorts="allow")
CHANGED = {
    "a variable less": Later(columns=("a", "b")),
    "another k": Later(params=TWO),
    "a party less": Later(n_parties=3),
    "all three": Later(("a", "b"), 3, TWO),
}


@pytest.mark.parametrize("what", CHANGED)
def test_the_same_rows_keep_their_clusters(
    house: House, spring: Spring, what: str
) -> None:
    """But for those of a cluster that the smaller number of clusters has no room for."""
    later = CHANGED[what]
    after = run(house, later.open(house), study()[: later.n_parties])
    assert after.keys() <= spring.labels.keys()
    counts = pd.crosstab(
        [spring.labels[row] for row in after], list(after.values())
    ).to_numpy()
    assert (np.count_nonzero(counts, axis=1) == 1).all(), "no cluster is divided"
    assert counts.shape == (3, later.params.n_clusters)
    sizes = np.bincount(list(after.values()))
    assert sizes.tolist() == sorted(sizes, reverse=True)


@pytest.mark.threat(155)
def test_few_new_rows_are_refused_whatever_else_changes(house: House) -> None:
    """Means of both quarters, subtracted, would be those of the one new row."""
    later = CHANGED["all three"]
    tables = [table.copy() for table in study()[: later.n_parties]]
    for n, table in enumerate(tables):
        table.loc[table.index[0], ["id", "a", "b", "c"]] = [f"new{n}", 1.0, 2.0, 3.0]
    with pytest.raises(GuardRefused, match="nearly the same rows"):
        run(house, later.open(house), tables)


@pytest.mark.threat(155)
def test_another_method_over_the_same_rows_raises_a_question(house: House) -> None:
    """Published means and distances give rows, whatever else is different now."""
    later = CHANGED["all three"]._replace(params=DataCollaboration(n_clusters=2))
    with pytest.raises(GuardRefused, match="allow_shown_together"):
        run(house, later.open(house), study()[: later.n_parties])


def test_a_quarter_of_other_people_raises_no_question(
    house: House, spring: Spring
) -> None:
    later = CHANGED["all three"]
    tables = study(seed=1, first=1000)[: later.n_parties]
    after = run(house, later.open(house), tables)
    assert not after.keys() & spring.labels.keys()
