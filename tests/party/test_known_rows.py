"""Whether a home knows rows again: by ids, or by what occurs once in their columns.

Marks are equal for equal rows, and of no use without the key.
"""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from clustering_protocols.numerics.data_source import MatrixSource
from party_sdk.disclosures.known_rows import (
    MOST_COLUMNS,
    KnownRows,
    Store,
    hash_cells,
    id_marks,
    replace_marks,
)
from party_sdk.tables import ArrowIds, open_table

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
        words = hash_cells(KEY, data)
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
    same = KnownRows(home.store).load_replaced_marks()
    assert np.array_equal(replace_marks(one, *same)[1:], other[1:])
    assert np.array_equal(home.marks(X[:, :3])[1:], other[1:])


def test_rows_with_equal_cells_stay_different_rows(home: Home) -> None:
    rng = np.random.default_rng(8)
    X, ids = TABLES["yes or no"](rng)[:, :2], [f"patient {row}" for row in range(N)]
    marks = home.marks(X, ids=ids)
    home.marks(X[rng.permutation(N)])
    home.marks(np.hstack([X, X[:, :1] * 2 + 1]), ids=ids)
    replaced = KnownRows(home.store).load_replaced_marks()
    assert len(set(replace_marks(marks, *replaced).tolist())) == N


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


# Words of cells, and marks of ids


OTHER_KEY = bytes(range(32))
X = np.random.default_rng(0).normal(size=(300, 3)).round(2)
NAMES = ("a", "b", "c")


def cells(
    rows: np.ndarray = X, names: Sequence[str] = NAMES, key: bytes = KEY
) -> np.ndarray:
    return hash_cells(key, MatrixSource(rows, columns=names, gaps=True))[0]


def test_cells_are_known_by_their_values_and_not_by_names() -> None:
    found = cells()
    assert np.array_equal(cells(X[::-1])[:, ::-1], found)
    assert np.array_equal(cells(X[:, ::-1], NAMES[::-1]), found[::-1])
    assert np.array_equal(cells(names=("other", "names", "now")), found)


def test_cells_beyond_a_batch_have_the_same_words() -> None:
    assert np.array_equal(cells(np.tile(X, (250, 1))), np.tile(cells(), 250))


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_other_values_have_other_words(key: bytes) -> None:
    values = np.array([[0, 1, -1, 2, 0.5, 1e300, -1e-300, np.inf]]).T[:-1]
    assert len(set(cells(values, "a", key)[0].tolist())) == len(values)


def test_zero_has_one_word_and_no_value_is_zero() -> None:
    quiet = np.array([np.nan]).view(np.uint64)
    other_nan = (quiet ^ np.uint64(1)).view(np.float64)[0]
    found = cells(np.array([[0.0, np.nan], [-0.0, other_nan]]), ("a", "b"))
    assert found[0, 0] == found[0, 1] != 0
    assert found[1].tolist() == [0, 0]


def test_wide_tables_are_added_up_by_the_names_of_their_columns() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3 * MOST_COLUMNS))
    names = [f"x{number}" for number in range(rows.shape[1])]
    found = cells(rows, names)
    assert found.shape == (MOST_COLUMNS, 50)
    order = rng.permutation(len(names))
    assert np.array_equal(cells(rows[:, order], [names[i] for i in order]), found)
    rows[7, 100] += 1
    changed = cells(rows, names) != found
    assert (changed.sum(), changed[:, 7].sum()) == (1, 1)


ID = st.text(st.characters(exclude_categories=("Cs",)), max_size=130)


@given(st.lists(ID, min_size=2, max_size=8, unique=True))
def test_an_id_has_one_mark_whatever_stands_beside_it(ids: list[str]) -> None:
    found = id_marks(KEY, ids)
    assert len(set(found.tolist())) == len(ids)
    alone = [id_marks(KEY, [each])[0] for each in ids]
    assert found.tolist() == alone


@given(
    st.lists(st.lists(ID, max_size=5), min_size=1, max_size=4).filter(any),
    st.integers(0, 6),
    st.integers(1, 20),
)
def test_arrow_and_python_have_the_same_marks_of_ids(
    chunks: list[list[str]], begin: int, length: int
) -> None:
    own = [pa.array(["before", *chunk], pa.large_string())[1:] for chunk in chunks]
    ids = ArrowIds(own)[begin : begin + length]
    expected = [id_marks(KEY, [each])[0] for each in ids]
    if expected:
        assert id_marks(KEY, ids).tolist() == expected


def test_ids_of_a_table_have_the_marks_of_their_texts() -> None:
    """Chunks and batches end at other rows, and some texts are empty or not ASCII."""
    n_rows = 70_001
    texts = [f"{'é病 a'[row % 4] * (row % 19)}{row}" for row in range(n_rows)]
    table = pa.table({"id": texts, "x": np.arange(n_rows) / 7})
    read = open_table(table, id_column="id")
    assert isinstance(read.ids, ArrowIds)
    expected = id_marks(KEY, texts)
    assert np.array_equal(id_marks(KEY, read.ids), expected)
    whole = pa.array(texts, pa.large_string())
    uneven = [whole[:5], whole[5:40_000], whole[40_000:40_000], whole[40_000:]]
    assert np.array_equal(id_marks(KEY, ArrowIds(uneven)), expected)


def test_without_the_key_marks_tell_nothing() -> None:
    ids, keys = [f"p{number}" for number in range(300)], (KEY, OTHER_KEY, b"\1" * 32)
    for one, other in itertools.combinations(keys, 2):
        assert not np.intersect1d(id_marks(one, ids), id_marks(other, ids)).size
        assert np.intersect1d(cells(key=one), cells(key=other)).size <= 1
