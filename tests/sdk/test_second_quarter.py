"""A second quarter at the same homes: a variable less, another k, a party less."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.analyst_process import House
from support.in_process import in_process

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout, Terms
from party_sdk.coordinator.repetition import Changes, like
from party_sdk.results.label_moves import LabelMoves, compare_labels
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
    """The first quarter: its terms, each row's label, and what analyst and homes keep."""

    terms: Terms
    labels: dict[str, int]
    folder: Path


@pytest.fixture(scope="module")
def spring(tmp_path_factory: pytest.TempPathFactory) -> Spring:
    folder = tmp_path_factory.mktemp("spring")
    schema = numbers(("a", "b", "c"), -60, 60)
    with opened(folder) as house:
        session = house.open("spring", LLF, LAYOUT, dictionary=[schema])
        return Spring(session.terms, run(house, session, study()), folder)


@pytest.fixture
def house(spring: Spring, tmp_path: Path) -> Iterator[House]:
    """The same homes after the first quarter."""
    shutil.copytree(spring.folder, tmp_path, dirs_exist_ok=True)
    with opened(tmp_path) as house:
        yield house


def again(house: House, before: Spring, changes: Changes, without: Any = ()) -> Any:
    asked = like(before.terms, without, changes)
    return house.coordinator.create_session(**asked, session_id="summer")


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


def moves(before: dict[str, int], after: dict[str, int]) -> LabelMoves:
    return compare_labels(before, after, match=True)


LESS = {"c": "leave-out"}
CHANGED = {
    "a variable less": (Changes(roles=LESS), ()),
    "another k": (Changes(params={"n_clusters": 2}), ()),
    "a party less": (Changes(), ("r4c1",)),
    "all three": (Changes(roles=LESS, params={"n_clusters": 2}), ("r4c1",)),
}


@pytest.mark.parametrize("what", CHANGED)
def test_the_same_rows_keep_their_clusters(
    house: House, spring: Spring, what: str
) -> None:
    """But for those of a cluster that the smaller number of clusters has no room for."""
    changes, without = CHANGED[what]
    first = spring.labels
    later = again(house, spring, changes, without)
    after = run(house, later, study()[: len(later.terms.layout.slots)])
    found = moves(first, after)
    gone = len(study()[3]) if without else 0
    assert (found.n_new, found.n_gone) == (0, gone)
    assert found.n_common == len(first) - gone
    left = {label for label in first.values() if label not in found.matched}
    joined = sum(first[row] in left for row in after)
    assert found.n_moved == joined
    assert bool(joined) == ("n_clusters" in changes.params)
    sizes = np.bincount(list(after.values()))
    assert sizes.tolist() == sorted(sizes, reverse=True)


@pytest.mark.threat(155)
def test_few_new_rows_are_refused_whatever_else_changes(
    house: House, spring: Spring
) -> None:
    """Means of both quarters, subtracted, would be those of the one new row."""
    changes, without = CHANGED["all three"]
    later = again(house, spring, changes, without)
    tables = [table.copy() for table in study()[: len(later.terms.layout.slots)]]
    for n, table in enumerate(tables):
        table.loc[table.index[0], ["id", "a", "b", "c"]] = [f"new{n}", 1.0, 2.0, 3.0]
    with pytest.raises(GuardRefused, match="nearly the same rows"):
        run(house, later, tables)


@pytest.mark.threat(155)
def test_another_method_over_the_same_rows_raises_a_question(
    house: House, spring: Spring
) -> None:
    """Published means and distances give rows, whatever else is different now."""
    changes, without = CHANGED["all three"]
    changes = replace(changes, protocol="dc")
    later = again(house, spring, changes, without)
    with pytest.raises(GuardRefused, match="allow_shown_together"):
        run(house, later, study()[: len(later.terms.layout.slots)])


def test_a_quarter_of_other_people_raises_no_question(
    house: House, spring: Spring
) -> None:
    changes, without = CHANGED["all three"]
    first = spring.labels
    later = again(house, spring, changes, without)
    tables = study(seed=1, first=1000)[: len(later.terms.layout.slots)]
    found = moves(first, run(house, later, tables))
    assert (found.n_common, found.n_moved, found.n_gone) == (0, 0, len(first))
