"""`coterie example`: write small tables to try things on, split between two parties."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click

from party_sdk.cli.options import FOLDER, Force
from party_sdk.cli.parameters import argument, command
from party_sdk.results.output_files import refuse_overwriting

if TYPE_CHECKING:
    import pyarrow as pa

    from clustering_protocols.records.arrays import IntArray

SEED = 1
N_PEOPLE = 500
COMMON = 0.9  # so high that enough rows are linked, although some links are missed


_FILES: Final = (
    "table.csv",
    "rows/north.csv",
    "rows/south.csv",
    "columns/clinic.csv",
    "columns/laboratory.csv",
    "people/north.csv",
    "people/south.csv",
    "people/truth.csv",
)


@command()
def example(
    folder: Annotated[Path, argument(type=FOLDER)], *, force: Force = False
) -> None:
    """Write small example tables into FOLDER.

    The data are 178 samples of wine with 13 measurements, which come with scikit-learn.
    The whole table, with the true classes, is written to table.csv. Split by rows, it
    is written to rows/north.csv and rows/south.csv; split by columns, to
    columns/clinic.csv and columns/laboratory.csv.

    The folder people contains two tables of invented people without a common id, and
    truth.csv, which lists the rows that belong to the same person.
    """
    import numpy as np
    import pyarrow as pa
    from sklearn.datasets import load_wine

    refuse_overwriting([folder / name for name in _FILES], None, force=force)
    bunch = load_wine()
    order = np.random.default_rng(SEED).permutation(len(bunch.data))
    X, classes = bunch.data[order], bunch.target[order]
    names = [name.replace("/", "_") for name in bunch.feature_names]
    columns = {
        "sample": pa.array(f"w{number:03}" for number in range(1, len(X) + 1)),
        **{name: pa.array(values) for name, values in zip(names, X.T, strict=True)},
    }
    table = pa.table(columns)
    all_rows = np.arange(len(X))
    half, clinic_columns = len(X) // 2, names[:7]
    _write_csv(folder / "table.csv", table.append_column("class", pa.array(classes)))
    _write_csv(folder / "rows" / "north.csv", _select(table, all_rows[:half], names))
    _write_csv(folder / "rows" / "south.csv", _select(table, all_rows[half:], names))
    _write_csv(
        folder / "columns" / "clinic.csv", _select(table, all_rows, clinic_columns)
    )
    _write_csv(
        folder / "columns" / "laboratory.csv", _select(table, all_rows, names[7:])
    )
    _write_people(folder / "people")


def _write_people(folder: Path) -> None:
    import numpy as np
    import pyarrow as pa

    from party_sdk.lab.synthetic_people import make_hospitals

    north, south = hospitals = make_hospitals(N_PEOPLE, COMMON, seed=SEED)
    measured = (("glucose", "insulin", "weight"), ("pulse", "systolic", "diastolic"))
    paths = [folder / "north.csv", folder / "south.csv"]
    for path, hospital, names in zip(paths, hospitals, measured, strict=True):
        cells = {
            name: [row[name] for row in hospital.cells] for name in hospital.cells[0]
        }
        values = {
            n: v.round(3) for n, v in zip(names, hospital.measured.T, strict=True)
        }
        _write_csv(path, pa.table({**cells, **values}))
    _, north_rows, south_rows = np.intersect1d(
        north.people, south.people, return_indices=True
    )
    _write_csv(
        folder / "truth.csv",
        pa.table({"north": north_rows + 1, "south": south_rows + 1}),
    )


def _select(table: "pa.Table", rows: "IntArray", names: list[str]) -> "pa.Table":
    return table.take(rows).select(["sample", *names])


def _write_csv(path: Path, table: "pa.Table") -> None:
    from pyarrow import csv

    path.parent.mkdir(parents=True, exist_ok=True)
    csv.write_csv(table, path)
    click.echo(f"{path}: {table.num_rows} rows, {table.num_columns} columns")
