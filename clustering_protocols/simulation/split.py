"""Division of a pooled table among the slots of a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.numerics.data_source import DataSource, MatrixSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Layout


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """A pooled matrix, divided among the slots of a layout.

    rows, columns: lists of int64 arrays; the row numbers of each row group, and the
        column numbers of each column group.
    held: mapping of slot to int64 array; the row numbers of each party, in table order.
    """

    layout: Layout
    rows: Sequence[IntArray]
    held: Mapping[str, IntArray] = field(repr=False)
    columns: Sequence[IntArray]
    data: Mapping[str, DataSource] = field(repr=False)


def split(
    X: FloatArray,
    layout: Layout,
    seed: int,
    columns: Sequence[str] | None = None,
    missing: float = 0.0,
    dictionary: Sequence[Schema] | None = None,
) -> Split:
    """Shuffle rows and columns and divide them evenly among the slots of a layout.

    Ids are assigned after shuffling, so that each row group is in the order of its ids.

    missing: the fraction of rows that each party lacks. If it is positive, the parties
        of a row group hold different rows, each party in a different order.
    dictionary: the schemas of the column groups. The columns of X are then their
        fields, in this order and not shuffled, and NaN is a missing value.
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(X.shape[0])
    rows = np.array_split(shuffled, layout.n_row_groups)
    ids = np.array(number_rows(len(shuffled)))[np.argsort(shuffled)]
    cols = np.array_split(rng.permutation(X.shape[1]), layout.n_column_groups)
    names = list(columns or (f"x{index}" for index in range(X.shape[1])))
    if dictionary is not None:
        widths = [len(schema.names) for schema in dictionary]
        cols = np.split(np.arange(X.shape[1]), np.cumsum(widths)[:-1])
        names = [name for schema in dictionary for name in schema.names]
    held = {slot.name: rows[slot.row] for slot in layout.slots}
    if missing:
        for slot, own in held.items():
            held[slot] = rng.permutation(own)[: len(own) - round(missing * len(own))]
    data = {
        slot.name: MatrixSource(
            X[np.ix_(held[slot.name], cols[slot.column])],
            columns=[names[index] for index in cols[slot.column]],
            ids=ids[held[slot.name]].tolist(),
            gaps=dictionary is not None,
        )
        for slot in layout.slots
    }
    return Split(layout=layout, rows=rows, columns=cols, held=held, data=data)


def number_rows(n_rows: int) -> list[str]:
    """Return ids for n_rows rows, padded with zeros so that they are in ascending order."""
    digits = len(str(n_rows))
    return [f"{row:0{digits}d}" for row in range(n_rows)]
