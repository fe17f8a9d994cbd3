"""Parties in TypeScript get the labels that all parties in Python get, bit for bit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.analyst_process import Crowd
from support.tables import misspelt_people

from benchmarks.openapi import run_type_generator
from clustering_protocols import simulation
from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc.params import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf.params import LosslessFederated
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.terms import Layout
from tests.system.interop.sessions import run_beside

ROWS = Layout.lattice(3)
COLUMNS = Layout.lattice(1, 3)
FIRST, SECOND, LAST = ROWS.names
DUMMY = Dummy(n_clusters=3, void_attempts=1)
DC = DataCollaboration(n_clusters=3, dimensions="all_but_one")
LLF = LosslessFederated(n_clusters=3)
DEGREES = LLF.model_copy(update={"algorithm": "fuzzy_cmeans", "small_cohorts": "allow"})
KEYS = ("name + birth | date", "birth | date + town | first:3")


def make_rows(n_columns: int = 4) -> np.ndarray:
    generator = np.random.default_rng(0)
    centres = generator.normal(scale=8, size=(3, n_columns))
    return centres[np.arange(90) % 3] + generator.normal(size=(90, n_columns))


def make_parts(layout: Layout, n_columns: int = 4) -> simulation.Split:
    return simulation.split(
        make_rows(n_columns),
        layout,
        seed=1,
        columns=[f"Größe {number}" for number in range(n_columns)],
    )


def start_from(parts: simulation.Split, *starts: np.ndarray) -> LosslessFederated:
    """Return terms that give a start, in the order of the column groups."""
    order = np.concatenate(parts.columns)
    given = tuple(tuple(start[order].tolist()) for start in starts)
    return LosslessFederated(
        n_clusters=len(given), init="given", initial_centroids=given
    )


@pytest.mark.parametrize(
    ("params", "foreign"),
    [
        (DUMMY, [FIRST]),
        (DUMMY, [LAST]),
        (DC, [FIRST]),
        (DC, [LAST]),
        (DC, [FIRST, SECOND, LAST]),
        (LLF, [FIRST]),
        (LLF, [LAST]),
        (DEGREES, [FIRST]),
    ],
)
def test_rows_split_by_parties(
    gather: Callable[..., Crowd], tmp_path: Path, params: Params, foreign: Sequence[str]
) -> None:
    crowd = gather(params, make_parts(ROWS))
    assert run_beside(crowd, tmp_path, foreign) == crowd.expected()
    kept = [each for each in tmp_path.rglob("client/**/*") if each.is_file()]
    assert kept
    assert all(each.stat().st_mode & 0o077 == 0 for each in kept)


@pytest.mark.parametrize("n_columns", [1, 1100])
def test_a_given_start_over_few_and_many_columns(
    gather: Callable[..., Crowd], tmp_path: Path, n_columns: int
) -> None:
    """The last cluster is empty: all move it by the same small steps."""
    parts, rows = make_parts(ROWS, n_columns), make_rows(n_columns)
    crowd = gather(start_from(parts, rows[0], rows[1], rows[2] + 1000), parts)
    assert run_beside(crowd, tmp_path, ROWS.names) == crowd.expected()


def test_columns_split_by_parties_with_a_given_start(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    parts, rows = make_parts(COLUMNS), make_rows()
    crowd = gather(start_from(parts, rows[0], rows[1], rows[2]), parts)
    assert run_beside(crowd, tmp_path, COLUMNS.names) == crowd.expected()


def test_common_rows_by_ids(gather: Callable[..., Crowd], tmp_path: Path) -> None:
    """Parties hold different rows in another order."""
    alignment = Alignment(method="ecdh", minimum_share=0.1)
    parts = simulation.split(make_rows(), COLUMNS, seed=1, missing=0.2)
    crowd = gather(LLF.model_copy(update={"alignment": alignment}), parts)
    foreign = (COLUMNS.names[0], COLUMNS.names[2])
    assert run_beside(crowd, tmp_path, foreign) == crowd.expected()


def test_common_rows_by_match_keys(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    """Each list goes round through parties in both languages, two of them linked."""
    alignment = Alignment(method="ecdh", match_keys=KEYS, minimum_share=0)
    data = {slot: misspelt_people(place) for place, slot in enumerate(COLUMNS.names)}
    crowd = gather(
        DataCollaboration(n_clusters=3, dimensions="all_but_one", alignment=alignment),
        replace(make_parts(COLUMNS, 6), data=data),
    )
    foreign = (COLUMNS.names[0], COLUMNS.names[2])
    found = run_beside(crowd, tmp_path, foreign)
    assert found == crowd.expected()
    assert {labels.count(-1) for labels in found.values()} == {5}


def test_rows_and_columns_split_by_parties(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    layout = Layout.lattice(2, 2)
    crowd = gather(DC, make_parts(layout))
    foreign = (layout.names[0], layout.names[3])
    assert run_beside(crowd, tmp_path, foreign) == crowd.expected()


def test_types_are_those_of_the_messages_that_an_analyst_serves() -> None:
    run_type_generator("--check")
