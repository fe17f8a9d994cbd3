"""After a stage selects rows, later stages see only these, in the agreed order."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.sparse import csr_array

from clustering_protocols.contract import Outcome
from clustering_protocols.contract.published import (
    add_participation_note,
    restore_row_order,
)
from clustering_protocols.numerics.data_source import (
    BATCH_ROWS,
    DataSource,
    MatrixSource,
    SparseSource,
    keep_rows,
    matrix,
    order_rows,
)
from clustering_protocols.records.arrays import FloatArray, IntArray

X = np.random.default_rng(0).normal(size=(12, 3))
KEPT = np.array([1, 2, 5, 8, 9, 11])


def test_kept_rows_are_those_of_the_matrix_with_their_ids() -> None:
    source = MatrixSource(X, columns=["a", "b", "c"], ids=[str(i) for i in range(12)])
    kept = keep_rows(source, KEPT)
    assert matrix(kept).tolist() == X[KEPT].tolist()
    assert (kept.n_rows, list(kept.columns)) == (6, ["a", "b", "c"])
    assert list(kept.ids or ()) == ["1", "2", "5", "8", "9", "11"]


def test_kept_rows_come_in_batches_also_where_a_batch_keeps_none() -> None:
    n = 3 * BATCH_ROWS
    source = MatrixSource(np.arange(float(n))[:, None])
    rows = np.array([3, BATCH_ROWS - 1, 2 * BATCH_ROWS, n - 1])
    batches = [batch[:, 0].tolist() for batch in keep_rows(source, rows).batches()]
    assert batches == [[3, BATCH_ROWS - 1], [2 * BATCH_ROWS, n - 1]]


class Forward:
    def __init__(self, source: MatrixSource) -> None:
        self.source = source
        self.n_rows, self.columns = source.n_rows, source.columns
        self.ids = source.ids

    def batches(self) -> Iterator[FloatArray]:
        return self.source.batches()


NAMED = MatrixSource(X, columns=["a", "b", "c"], ids=[str(i) for i in range(12)])
SHUFFLED = np.array([7, 0, 11, 3, 4])


@pytest.mark.parametrize(
    "source",
    [NAMED, SparseSource(csr_array(X), ids=NAMED.ids), Forward(NAMED)],
    ids=["matrix", "sparse", "any other"],
)
def test_reordered_rows_keep_their_values_and_ids(source: DataSource) -> None:
    found = order_rows(source, SHUFFLED)
    assert matrix(found).tolist() == X[SHUFFLED].tolist()
    assert matrix(found).tolist() == X[SHUFFLED].tolist(), "a second pass is the same"
    assert (found.n_rows, list(found.columns)) == (5, list(source.columns))
    assert list(found.ids or ()) == ["7", "0", "11", "3", "4"]
    assert isinstance(found, SparseSource) == isinstance(source, SparseSource)


def test_rows_in_another_order_come_in_batches_that_fit_memory() -> None:
    class Wide:
        """A million columns of the number of the row, none of them kept."""

        n_rows, columns, ids = 9, range(1_000_000), None

        def batches(self) -> Iterator[FloatArray]:
            raise AssertionError("nobody reads it as a whole")

        def take(self, rows: IntArray) -> FloatArray:
            return np.broadcast_to(rows[:, None].astype(float), (len(rows), 1_000_000))

    found = order_rows(Wide(), np.arange(9)[::-1])  # type: ignore[arg-type]  # as much of a source as is read
    assert [batch[:, 0].tolist() for batch in found.batches()] == [
        [8, 7, 6, 5],
        [4, 3, 2, 1],
        [0],
    ]


def test_an_outcome_is_put_back_into_the_party_s_own_order() -> None:
    outcome = Outcome(
        labels=np.array([7, 8]),
        memberships=np.array([[0.2, 0.8], [1.0, 0.0]]),
        coordinates=np.ones((2, 1)),
        report={"kept": 1},
    )
    whole = add_participation_note(
        restore_row_order(outcome, np.array([1, 3]), 4), 2, 4
    )
    assert whole.labels.tolist() == [-1, 7, -1, 8]
    assert whole.memberships is not None
    assert whole.memberships[1].tolist() == [0.2, 0.8]
    assert np.isnan(whole.memberships[[0, 2]]).all()
    assert whole.coordinates is not None
    assert np.isnan(whole.coordinates[:, 0]).tolist() == [True, False, True, False]
    assert whole.report == {"kept": 1, "rows that took part": "2 of 4"}
