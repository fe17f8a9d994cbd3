"""Marks of rows: equal for equal rows, of no use without the key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from clustering_protocols.numerics.data_source import MatrixSource
from party_sdk.disclosures.column_sketches import LENGTH, MOST_COLUMNS, Sketches
from party_sdk.disclosures.row_marks import RowMarks, marks_of
from party_sdk.tables import ArrowIds, open_table

KEY, OTHER_KEY = bytes(32), bytes(range(32))
X = np.random.default_rng(0).normal(size=(300, 3)).round(2)
NAMES = ("a", "b", "c")


def marks(
    rows: np.ndarray = X,
    names: Sequence[str] = NAMES,
    ids: Sequence[str] | None = None,
    key: bytes = KEY,
) -> RowMarks:
    return marks_of(key, MatrixSource(rows, columns=names, ids=ids, gaps=True))


def test_cells_are_known_in_any_order_of_rows_and_columns() -> None:
    assert np.array_equal(marks(X[::-1]).cells[::-1], marks().cells)
    assert np.array_equal(marks(X[:, ::-1], NAMES[::-1]).cells, marks().cells)


def test_rows_beyond_a_batch_are_marked_alike() -> None:
    many = np.tile(X, (250, 1))
    ids = [f"p{number % 300}" for number in range(len(many))]
    found = marks(many, ids=ids)
    assert np.array_equal(found.cells, np.tile(marks().cells, 250))
    assert np.array_equal(found.rows, np.tile(marks(ids=ids[:300]).rows, 250))


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_cells_of_other_rows_have_other_marks(key: bytes) -> None:
    rows = np.array(
        [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [-1, 0, 0], [np.nan, 0, 0]]
    )
    assert len(set(marks(rows, key=key).cells.tolist())) == len(rows)
    assert not np.isin(marks(rows, ("a", "b", "d"), key=key).cells, marks(rows).cells)[
        [1, 5]
    ].any()


def test_zero_and_no_value_have_one_form_each() -> None:
    quiet = np.array([np.nan]).view(np.uint64)
    other_nan = (quiet ^ np.uint64(1)).view(np.float64)[0]
    rows = np.array([[0.0, np.nan], [-0.0, other_nan]])
    first, second = marks(rows, ("a", "b")).cells
    assert first == second


ID = st.text(st.characters(exclude_categories=("Cs",)), max_size=130)


@given(st.lists(ID, min_size=2, max_size=8, unique=True))
def test_an_id_has_one_mark_whatever_stands_beside_it(ids: list[str]) -> None:
    found = marks(X[: len(ids)], ids=ids).rows
    assert len(set(found.tolist())) == len(ids)
    alone = [marks(X[:1], ids=[each]).rows[0] for each in ids]
    assert found.tolist() == alone


def test_ids_keep_the_marks_that_homes_have_of_them() -> None:
    """Known answers: of the first release with such marks."""
    ids = ["p1", "Zoë", "", "病院 0000001 / 2024"]
    assert marks(X[:4], ids=ids, key=OTHER_KEY).rows.tolist() == [
        3934937261335262779,
        8346047422100246836,
        9091682291971884232,
        1190183065081477150,
    ]


def test_cells_and_columns_keep_the_marks_of_homes() -> None:
    """Known answers: of the first release with such marks."""
    rows = np.array(
        [[1.5, -2, 0], [-0.0, np.nan, 7.25], [1e300, -1e-300, 3], [1.5, -2, -0.0]]
    )
    found = marks(rows, key=OTHER_KEY)
    assert found.cells.tolist() == [
        11584743629444036528,
        6661623097482535313,
        1041280054668630733,
        11584743629444036528,
    ]
    assert {mark: each.tolist() for mark, each in found.sketches.items()} == {
        "c0bf9a5fb74454a4": [
            [13829556666223748059, 13844913134763702139, 17032520248319546508],
            [2, 1, 1],
        ],
        "aac788f5e20fe5e8": [[15773305088967294741, 16466560345486654056], [2, 1]],
        "84eaa475f585d59b": [
            [3162805786219722253, 9397456939691436998, 15728912946273337738],
            [1, 2, 1],
        ],
    }


def mixed(word: int) -> int:
    """Return what splitmix64 makes of a step, in Python."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ word >> shift) * factor % 2**64
    return word ^ word >> 31


class WithIds(MatrixSource):
    """Rows of which the ids stay as they are given."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(np.zeros((len(ids), 1)))
        self.ids = ids


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
    expected = [marks(X[:1], ids=[each]).rows[0] for each in ids]
    if expected:
        assert marks_of(KEY, WithIds(ids)).rows.tolist() == expected


def test_ids_of_a_table_have_the_marks_of_their_texts() -> None:
    """Chunks and batches end at other rows, and some texts are empty or not ASCII."""
    n_rows = 70_001
    texts = [f"{'é病 a'[row % 4] * (row % 19)}{row}" for row in range(n_rows)]
    table = pa.table({"id": texts, "x": np.arange(n_rows) / 7})
    read = open_table(table, id_column="id")
    assert isinstance(read.ids, ArrowIds)
    expected = marks_of(KEY, WithIds(texts)).rows
    assert np.array_equal(marks_of(KEY, read).rows, expected)
    whole = pa.array(texts, pa.large_string())
    uneven = [whole[:5], whole[5:40_000], whole[40_000:40_000], whole[40_000:]]
    assert np.array_equal(marks_of(KEY, WithIds(ArrowIds(uneven))).rows, expected)


def test_without_the_key_marks_tell_nothing() -> None:
    ids = [f"p{number}" for number in range(300)]
    found = [marks(ids=ids, key=key) for key in (KEY, OTHER_KEY, bytes([1]) * 32)]
    for one, other in combinations(found, 2):
        for kind in ("cells", "ids"):
            assert not np.intersect1d(getattr(one, kind), getattr(other, kind)).size
    assert not np.intersect1d(found[0].cells, found[0].rows).size


@pytest.mark.parametrize("n_values", [1, 3, LENGTH - 1, LENGTH, LENGTH + 1, 5000])
def test_a_sketch_counts_the_least_hashes(n_values: int) -> None:
    """Whatever batches the values come in, and to the last bit; gaps are no values."""
    rng = np.random.default_rng(n_values)
    salts = rng.integers(0, 2**64, 2, dtype=np.uint64)
    sketches, counted = Sketches(b"key", "xy", salts), (Counter[int](), Counter[int]())
    for size in rng.integers(0, 2000, 12):
        rows = rng.integers(0, n_values, (size, 2)).astype(np.float64)
        rows[rng.random(rows.shape) < 0.1] = np.nan
        sketches.add(rows, totals := np.ones(size, np.uint64))
        words = rows.view(np.uint64) ^ salts
        hashes = np.array([*map(mixed, words.ravel().tolist())], dtype=np.uint64)
        hashes = hashes.reshape(rows.shape)
        assert np.array_equal(totals, hashes.sum(axis=1) + np.uint64(1))
        for counts, some, values in zip(counted, hashes.T, rows.T, strict=True):
            counts.update(some[~np.isnan(values)].tolist())
    alone = [Sketches(b"key", name, salts[:1]).found.keys() for name in "xy"]
    for (mark,), counts in zip(alone, counted, strict=True):
        expected = [[h, counts[h]] for h in sorted(counts)[:LENGTH]]
        assert sketches.found[mark].T.tolist() == expected


def test_of_many_columns_those_of_least_marks_are_sketched() -> None:
    names = [f"x{number}" for number in range(MOST_COLUMNS + 40)]
    rows = np.random.default_rng(0).normal(size=(50, len(names)))
    few = [marks(rows[:, [i]], [name]).sketches for i, name in enumerate(names)]
    alone = {mark: each for found in few for mark, each in found.items()}
    found = marks(rows, names).sketches
    assert sorted(found) == sorted(alone)[:MOST_COLUMNS]
    assert all(np.array_equal(found[mark], alone[mark]) for mark in found)
