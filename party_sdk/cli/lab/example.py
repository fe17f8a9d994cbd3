"""`coterie example`: write small tables to try things on, split between two parties."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from clustering_protocols.common.errors import GuardRefused
from party_sdk.cli.options import FOLDER, Force
from party_sdk.cli.parameters import argument, command

if TYPE_CHECKING:
    import pyarrow as pa

SEED = 1
N_PEOPLE = 500
COMMON = 0.9  # so high that enough rows are linked, although some links are missed


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
    tables = _wine_tables() | _people_tables()
    contents = {folder / name: _to_csv(table) for name, table in tables.items()}
    for path, content in contents.items():
        is_same = path.is_file() and path.read_bytes() == content
        if not (force or is_same) and (path.exists() or path.is_symlink()):
            raise GuardRefused(
                f"{path} already exists with other content: choose another folder, or "
                "use --force."
            )
    for (path, content), table in zip(contents.items(), tables.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        click.echo(f"{path}: {table.num_rows} rows, {table.num_columns} columns")


def _wine_tables() -> "dict[str, pa.Table]":
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
    half = len(X) // 2
    return {
        "table.csv": table.append_column("class", pa.array(classes)),
        "rows/north.csv": table[:half],
        "rows/south.csv": table[half:],
        "columns/clinic.csv": table.select(["sample", *names[:7]]),
        "columns/laboratory.csv": table.select(["sample", *names[7:]]),
    }


def _people_tables() -> "dict[str, pa.Table]":
    import numpy as np
    import pyarrow as pa

    from party_sdk.lab.synthetic_people import make_hospitals

    north, south = hospitals = make_hospitals(N_PEOPLE, COMMON, seed=SEED)
    measured = (("glucose", "insulin", "weight"), ("pulse", "systolic", "diastolic"))
    tables = {}
    for name, hospital, names in zip(
        ("north", "south"), hospitals, measured, strict=True
    ):
        cells = {
            column: [row[column] for row in hospital.cells]
            for column in hospital.cells[0]
        }
        values = {
            n: v.round(3) for n, v in zip(names, hospital.measured.T, strict=True)
        }
        tables[f"people/{name}.csv"] = pa.table({**cells, **values})
    _, north_rows, south_rows = np.intersect1d(
        north.people, south.people, return_indices=True
    )
    truth = pa.table({"north": north_rows + 1, "south": south_rows + 1})
    return tables | {"people/truth.csv": truth}


def _to_csv(table: "pa.Table") -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    buffer = pa.BufferOutputStream()
    csv.write_csv(table, buffer)
    content: bytes = buffer.getvalue().to_pybytes()
    return content
