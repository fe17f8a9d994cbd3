"""Tables of parties: pieces of one matrix, or other rows of the same people.

Also the dictionaries of tables that hold nothing but numbers.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from clustering_protocols import simulation
from clustering_protocols.numerics.data_source import DataSource, MatrixSource
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.alignment.identifiers import join_parts
from clustering_protocols.simulation import number_rows
from clustering_protocols.terms.schema import Schema, numeric_schema
from clustering_protocols.terms.terms import Layout


def cut(
    X: FloatArray,
    layout: Layout,
    sizes: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
) -> dict[str, MatrixSource]:
    """Return the rows of X, in order, as parties of these sizes, or of equal ones.

    Values may be missing if the columns have names.
    """
    ends = len(layout.names) if sizes is None else np.cumsum(sizes)[:-1]
    pieces = np.array_split(X, ends)
    return {
        slot: MatrixSource(piece, columns, gaps=columns is not None)
        for slot, piece in zip(layout.names, pieces, strict=True)
    }


def write_csv(path: Path, data: DataSource) -> None:
    """Write rows and their ids, with all digits of each number."""
    rows = [row for batch in data.batches() for row in batch.tolist()]
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", *data.columns])
        table.writerows([id_, *row] for id_, row in zip(data.ids, rows, strict=True))


def cut_columns(
    X: FloatArray, layout: Layout, widths: Sequence[int] | None = None
) -> dict[str, DataSource]:
    """Return the columns of X, in order, as parties of these widths, or of equal ones."""
    ends = len(layout.names) if widths is None else np.cumsum(widths)[:-1]
    parts, ids = np.array_split(np.arange(X.shape[1]), ends), number_rows(len(X))
    return {
        slot: MatrixSource(X[:, own], [f"x{j}" for j in own], ids)
        for slot, own in zip(layout.names, parts, strict=True)
    }


class Pieces:
    """A data source of batches of these sizes."""

    ids = None

    def __init__(self, X: FloatArray, sizes: Sequence[int]) -> None:
        self.n_rows = len(X)
        self.columns = [f"x{index}" for index in range(X.shape[1])]
        self._batches = np.split(X, np.cumsum(sizes)[:-1])

    def batches(self) -> Iterator[FloatArray]:
        return iter(self._batches)


def blobs(n_rows: int, width: int = 6) -> FloatArray:
    """Three groups of rows, far apart."""
    rng = np.random.default_rng(0)
    centres = 12.0 * rng.normal(size=(3, width))
    rows: FloatArray = centres[np.arange(n_rows) % 3]
    return rows + rng.normal(size=(n_rows, width))


def names(rows: Sequence[int] | FloatArray) -> list[str]:
    return [f"patient-{int(row):06d}" for row in rows]


def parties(
    X: FloatArray,
    held: Sequence[Sequence[int]],
    ids: Mapping[int, Sequence[str]] | None = None,
) -> simulation.Split:
    """Return parties of one row group with these rows of X, and ids of their own."""
    layout = Layout.lattice(1, len(held))
    columns = np.array_split(np.arange(X.shape[1]), len(held))
    data = {
        slot: MatrixSource(
            X[np.ix_(rows, columns[place])], ids=(ids or {}).get(place, names(rows))
        )
        for place, (slot, rows) in enumerate(zip(layout.names, held, strict=True))
    }
    return simulation.Split(
        layout=layout,
        rows=[np.arange(len(X))],
        columns=columns,
        held={s: np.array(r) for s, r in zip(layout.names, held, strict=True)},
        data=data,
    )


def overlapping_rows(n_parties: int, n_common: int, n_own: int) -> list[list[int]]:
    """Return rows that all parties have and rows that only one has, shuffled."""
    rng = np.random.default_rng(n_parties)
    found = []
    for place in range(n_parties):
        begin = n_common + place * n_own
        own = [*range(n_common), *range(begin, begin + n_own + place)]
        found.append(rng.permutation(own).tolist())
    return found


def misspelt_people(place: int) -> MatrixSource:
    """Thirty people whom all hold, some spelt otherwise, and five of one's own."""
    rows = [*range(30), *range(100 + 10 * place, 105 + 10 * place)]
    rng = np.random.default_rng(place)
    ids = []
    for number in rng.permutation(rows).tolist():
        spelt = f"Gr\u00f6\u00dfe, {'x' * (number % (place + 2))}{number}"
        day = f"{1 + number % 28:02}.0{1 + number // 28 % 9}.{1900 + number}"
        ids.append(join_parts([spelt, day, f"town {number % 7}"]))
    X = rng.normal(size=(len(rows), 2))
    return MatrixSource(X, [f"x{place}", f"y{place}"], ids)


def within(
    minimum: ArrayLike,
    maximum: ArrayLike,
    data: Mapping[str, DataSource],
    layout: Layout,
) -> list[Schema]:
    """Return the dictionaries of parties' columns, which lie in these ranges."""
    first = [layout.column_group(c)[0] for c in range(layout.n_column_groups)]
    return [numeric_schema(data[slot].columns, minimum, maximum) for slot in first]
