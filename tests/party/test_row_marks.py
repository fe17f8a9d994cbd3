"""Marks of rows: equal for equal rows, of no use without the key."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from clustering_protocols.numerics.data_source import MatrixSource
from party_sdk.disclosures.known_rows import MOST_COLUMNS, cell_words, id_marks
from party_sdk.tables import ArrowIds, open_table

KEY, OTHER_KEY = bytes(32), bytes(range(32))
X = np.random.default_rng(0).normal(size=(300, 3)).round(2)
NAMES = ("a", "b", "c")


def cells(
    rows: np.ndarray = X, names: Sequence[str] = NAMES, key: bytes = KEY
) -> np.ndarray:
    return cell_words(key, MatrixSource(rows, columns=names, gaps=True))[0]


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
    for one, other in combinations(keys, 2):
        assert not np.intersect1d(id_marks(one, ids), id_marks(other, ids)).size
        assert np.intersect1d(cells(key=one), cells(key=other)).size <= 1
