"""`coterie example`: small real tables to try things on, cut as two parties hold them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import pyarrow as pa

    from clustering_protocols.records.arrays import IntArray

SEED = 1


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def example(folder: Path) -> None:
    """Write small tables to try things on into FOLDER.

    The data are 178 samples of wine with 13 measurements, which come with scikit-learn.
    The whole table, with the true class, is in table.csv. The same table is split by rows
    into rows/north.csv and rows/south.csv. It is split by columns into
    columns/clinic.csv and columns/laboratory.csv.
    """
    import numpy as np
    import pyarrow as pa
    from sklearn.datasets import load_wine

    bunch = load_wine()
    order = np.random.default_rng(SEED).permutation(len(bunch.data))
    X, classes = bunch.data[order], bunch.target[order]
    names = [name.replace("/", "_") for name in bunch.feature_names]
    columns = {
        "sample": pa.array(f"w{number:03}" for number in range(1, len(X) + 1)),
        **{name: pa.array(values) for name, values in zip(names, X.T, strict=True)},
    }
    table = pa.table(columns)
    everything = np.arange(len(X))
    half, first = len(X) // 2, names[:7]
    _write(folder / "table.csv", table.append_column("class", pa.array(classes)))
    _write(folder / "rows" / "north.csv", _cut(table, everything[:half], names))
    _write(folder / "rows" / "south.csv", _cut(table, everything[half:], names))
    _write(folder / "columns" / "clinic.csv", _cut(table, everything, first))
    _write(folder / "columns" / "laboratory.csv", _cut(table, everything, names[7:]))


def _cut(table: pa.Table, rows: IntArray, names: list[str]) -> pa.Table:
    return table.take(rows).select(["sample", *names])


def _write(path: Path, table: pa.Table) -> None:
    from pyarrow import csv

    path.parent.mkdir(parents=True, exist_ok=True)
    csv.write_csv(table, path)
    click.echo(f"{path}: {table.num_rows} rows, {table.num_columns} columns")
