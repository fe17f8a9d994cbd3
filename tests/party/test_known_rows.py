"""Whether a home knows rows again: by ids, or by what occurs once in their columns."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from clustering_protocols.numerics.data_source import MatrixSource
from party_sdk.disclosures.known_rows import (
    KnownRows,
    Store,
    cell_words,
    id_marks,
    replace_marks,
)

KEY = bytes(32)
N, WIDTH = 60, 6
TABLES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "numbers": lambda rng: rng.normal(size=(N, WIDTH)),
    "levels": lambda rng: rng.integers(0, 7, (N, WIDTH)).astype(float),
    "yes or no": lambda rng: rng.integers(0, 2, (N, WIDTH)).astype(float),
    "rarely yes": lambda rng: (rng.random((2 * N, WIDTH)) < 0.1).astype(float),
}
OTHER_NAMES = [f"v{number}" for number in range(WIDTH)]


class Home:
    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)

    def marks(
        self,
        rows: np.ndarray,
        names: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> np.ndarray:
        data = MatrixSource(rows, columns=names, ids=ids, gaps=True)
        words = cell_words(KEY, data)
        return KnownRows(self.store).identify(id_marks(KEY, data.ids), *words)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize("kind", TABLES)
def test_the_same_file_has_the_same_marks_however_it_is_read(
    home: Home, kind: str
) -> None:
    X = TABLES[kind](np.random.default_rng(0))
    names = [f"x{number}" for number in range(WIDTH)]
    expected = home.marks(X)
    assert len(set(expected.tolist())) == len(X)
    for rows, called in (
        (X, names),
        (X, OTHER_NAMES),
        (X[:, ::-1], names[::-1]),
        (X[:, 1:], OTHER_NAMES[1:]),
        (X[:, 1:], names[1:]),
        (np.column_stack([X, X[:, 0] * X[:, 1] + 1]), [*names, "more"]),
    ):
        assert np.array_equal(home.marks(rows, called), expected)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_go_leave_the_others_known(
    home: Home, kind: str, seed: int, *, renamed: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = TABLES[kind](rng)
    expected = home.marks(X)
    for n_gone in (1, 2, 9):
        gone = rng.choice(len(X), n_gone, replace=False)
        found = home.marks(np.delete(X, gone, 0), OTHER_NAMES if renamed else None)
        assert np.isin(found, expected).mean() > 0.97


@pytest.mark.parametrize("kind", TABLES)
def test_rows_that_come_are_new_and_stay_known(home: Home, kind: str) -> None:
    rng = np.random.default_rng(1)
    X, more = TABLES[kind](rng), TABLES[kind](rng)[:30]
    expected = home.marks(X)
    grown = np.vstack([X, more])
    found = home.marks(grown)
    assert np.isin(found[: len(X)], expected).mean() > 0.97
    assert np.isin(found[len(X) :], expected).mean() < 0.2
    assert np.array_equal(home.marks(grown), found)


@pytest.mark.parametrize("kind", TABLES)
def test_other_people_are_not_known(home: Home, kind: str) -> None:
    first, *others = [TABLES[kind](np.random.default_rng(n)) for n in range(6)]
    expected = home.marks(first)
    for rows, width in itertools.product(others, (1, WIDTH)):
        assert not np.isin(home.marks(rows[:, :width]), expected).any()


@pytest.mark.parametrize("kind", ["numbers", "levels"])
def test_tables_of_the_same_rows_are_connected_by_a_third(
    home: Home, kind: str
) -> None:
    X = TABLES[kind](np.random.default_rng(6))
    one, other = home.marks(X[:, :3]), home.marks(X[:, 3:], OTHER_NAMES[3:])
    assert not np.isin(one, other).any()
    assert np.array_equal(home.marks(X[1:]), other[1:])
    same = KnownRows(home.store).read_same()
    assert np.array_equal(replace_marks(one, *same)[1:], other[1:])
    assert np.array_equal(home.marks(X[:, :3])[1:], other[1:])


def test_rows_with_equal_cells_stay_different_rows(home: Home) -> None:
    rng = np.random.default_rng(8)
    X, ids = TABLES["yes or no"](rng)[:, :2], [f"patient {row}" for row in range(N)]
    marks = home.marks(X, ids=ids)
    home.marks(X[rng.permutation(N)])
    home.marks(np.hstack([X, X[:, :1] * 2 + 1]), ids=ids)
    assert (
        len(set(replace_marks(marks, *KnownRows(home.store).read_same()).tolist())) == N
    )


@pytest.mark.parametrize("kind", ["numbers", "levels"])
def test_rows_in_another_order_are_known_by_what_they_say(
    home: Home, kind: str
) -> None:
    rng = np.random.default_rng(2)
    X = TABLES[kind](rng)
    expected, order = home.marks(X), rng.permutation(N)
    assert (home.marks(X[order]) == expected[order]).mean() > 0.97


def test_a_field_of_which_all_values_changed_makes_no_other_people(home: Home) -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(20, 80, N), rng.integers(0, 5, (N, 4))]) * 1.0
    expected = home.marks(X)
    X[:, 0] += 1
    assert np.array_equal(home.marks(X[1:]), expected[1:])


def test_ids_go_before_cells_and_cells_go_where_ids_are_others(home: Home) -> None:
    X = np.random.default_rng(4).normal(size=(N, 2))
    ids, others = ([f"{sign}{row}" for row in range(N)] for sign in "pq")
    expected = home.marks(X, ids=ids)
    assert np.array_equal(home.marks(X + 1, ids=ids), expected)
    assert np.array_equal(home.marks(X, ids=others), expected)
    assert np.array_equal(home.marks(X), expected)
    assert np.array_equal(home.marks(X[::-1] + 2, ids=others[::-1]), expected[::-1])
    one = home.marks(X, ids=[*ids[1:], "new"])
    assert np.isin(one, expected).sum() == N - 1


def test_a_table_is_kept_once_and_a_field_more_alone(home: Home) -> None:
    X = np.random.default_rng(5).normal(size=(N, 3))
    for rows in (X[:, :2], X, X[:, 1:], X[:, ::-1]):
        home.marks(rows)
    kept = [home.store.read("tables", name) for name in home.store.numbers("tables")]
    assert len(kept) == 2
    assert len(kept[1]) < len(kept[0])
