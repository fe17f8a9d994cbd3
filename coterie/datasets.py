"""Split a table among parties to try out methods.

    from coterie import FederatedKMeans, datasets
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    dealt = datasets.deal(X, (5, 1), classes=y, concentration=0.5)
    model = FederatedKMeans(3, layout=dealt.layout).fit(dealt.tables)

``dealt.tables`` has one table for each party of ``dealt.layout``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.terms.terms import Layout
from party_sdk.lab.parties import Lattice, as_layout

__all__ = ["Dealt", "deal"]

_TRIES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dealt:
    """A table that was split among parties.

    layout: the layout of the parties.
    tables: one table per party, in slot order, of the same type as the original table.
    rows, columns: for each party, int64 arrays of its row and column indices.
    """

    layout: Layout
    tables: list[Any] = field(repr=False)
    rows: list[IntArray] = field(repr=False)
    columns: list[IntArray] = field(repr=False)


def deal(
    table: Any,
    layout: Layout | Lattice,
    *,
    classes: ArrayLike | None = None,
    concentration: float | None = None,
    fewest: int = 2,
    random_state: int | np.random.Generator = 0,
) -> Dealt:
    """Split the rows and columns of a table among the parties of a layout.

    Rows are split evenly and at random or, if there are classes, each class is split in
    Dirichlet proportions, so that institutions have different class mixtures. Columns
    are always split evenly and at random, and keep their order.

    table: matrix, or table of pandas, polars or pyarrow, of shape (n, m).
    layout: Layout, or (int, int) for the numbers of row groups and column groups. A
        Layout may leave cells of the grid without a party.
    classes: (n,); the class of each row.
    concentration: float above 0; parameter of the Dirichlet distribution, required with
        classes. Below 1, institutions differ strongly; above 10, only slightly.
    fewest: int; minimum number of rows in each row group. Draws with fewer are
        repeated.
    random_state: int or numpy Generator.

    Raises InvalidParameters if the table cannot be split in this way.
    """
    rng = np.random.default_rng(random_state)
    layout = as_layout(layout)
    matrix = _read_table(table)
    n_rows, n_columns = matrix.shape
    for size, n_needed, noun in (
        (n_rows, layout.n_row_groups * max(fewest, 1), "row"),
        (n_columns, layout.n_column_groups, "column"),
    ):
        if size < n_needed:
            raise InvalidParameters(
                f"{size} {noun}s are too few: {n_needed} are needed."
            )
    if (classes is None) != (concentration is None):
        raise InvalidParameters(
            "give classes and concentration together.", field="concentration"
        )
    if classes is None or concentration is None:
        rows = np.array_split(rng.permutation(n_rows), layout.n_row_groups)
    else:
        class_labels = np.asarray(classes)
        if class_labels.shape != (n_rows,):
            raise InvalidParameters(
                f"each of the {n_rows} rows needs a class; the shape is {class_labels.shape}.",
                field="classes",
            )
        try:
            is_incomplete = (class_labels != class_labels).any()  # NaN
            is_incomplete |= None in class_labels.tolist()
        except TypeError:  # NA in pandas is neither equal nor unequal to itself
            is_incomplete = True
        if is_incomplete:
            raise InvalidParameters("some rows have no class.", field="classes")
        rows = deal_classes(
            class_labels, layout.n_row_groups, concentration, rng, fewest=fewest
        )
    column_parts = np.array_split(rng.permutation(n_columns), layout.n_column_groups)
    columns = [np.sort(numbers) for numbers in column_parts]
    parts = [(rows[slot.row], columns[slot.column]) for slot in layout.slots]
    return Dealt(
        layout=layout,
        tables=[_select(matrix, *part) for part in parts],
        rows=[numbers for numbers, _ in parts],
        columns=[numbers for _, numbers in parts],
    )


def deal_classes(
    classes: Any,
    n_groups: int,
    concentration: float,
    rng: np.random.Generator,
    *,
    fewest: int = 2,
) -> list[IntArray]:
    """Return the row indices of each group, splitting classes in Dirichlet proportions.

    classes: (n,). A draw in which a group gets fewer than ``fewest`` rows is repeated.

    Raises InvalidParameters if no draw gives every group at least ``fewest`` rows.
    """
    if not 0 < concentration < np.inf:
        raise InvalidParameters("a number above 0 is needed.", field="concentration")
    for _ in range(_TRIES):
        groups: list[list[IntArray]] = [[] for _ in range(n_groups)]
        for label in np.unique(classes):
            members = rng.permutation(np.flatnonzero(classes == label))
            shares = rng.dirichlet(np.full(n_groups, concentration))
            cuts = (np.cumsum(shares)[:-1] * len(members)).astype(int)
            for group, part in zip(groups, np.split(members, cuts), strict=True):
                group.append(part)
        rows = [np.concatenate(group) for group in groups]
        if min(map(len, rows)) >= fewest:
            return rows
    raise InvalidParameters(
        f"{_TRIES:,} draws left some row group with fewer than {fewest} rows. Use a "
        "larger concentration, or fewer row groups."
    )


def _read_table(table: Any) -> Any:
    if issparse(table):
        return table.tocsr()
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        frame = np.asarray(table)
        if frame.ndim != 2:
            raise InvalidParameters(
                f"A table has rows and columns; this one has the shape {frame.shape}.",
                field="table",
            )
    return frame


def _select(table: Any, rows: IntArray, columns: IntArray) -> Any:
    if isinstance(table, nw.DataFrame):
        return table[rows.tolist(), columns.tolist()].to_native()
    return table[rows][:, columns]
