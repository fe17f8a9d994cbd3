"""A result beside the party's own table, in its kind of frame."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.contract import Outcome
from clustering_protocols.numerics.metrics import Figures
from party_sdk.results.label_files import (
    count_formula_like_cells,
    formula_advice,
    write_labels,
)
from party_sdk.results.results import Result
from party_sdk.tables import open_table

COLUMNS: dict[str, Any] = {
    "patient": ["b", "a", "c"],
    "age": [30.0, 41.0, 52.0],
    "label": ["old", "names", "stay"],
}
KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def result_of(table: Any, **more: Any) -> Result:
    data = open_table(table, id_column="patient", columns=["age"])
    outcome = Outcome(labels=np.array([1, -1, 0]), **more)
    return Result.of(outcome, data, data.columns)


def columns_of(table: Any) -> dict[str, list[Any]]:
    if isinstance(table, pd.DataFrame):
        return {str(name): list(values) for name, values in table.items()}
    found: dict[str, list[Any]] = (
        table.to_dict(as_series=False)
        if isinstance(table, pl.DataFrame)
        else table.to_pydict()
    )
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_labels_stand_beside_a_frame_of_the_same_kind(kind: str) -> None:
    table = KINDS[kind](COLUMNS)
    memberships = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    found = result_of(table, memberships=memberships).to_frame(table)
    assert type(found) is type(table)
    assert columns_of(found) == {
        **COLUMNS,
        "label_": [1, -1, 0],
        "membership_0": [0.2, 0.5, 0.9],
        "membership_1": [0.8, 0.5, 0.1],
    }
    assert columns_of(table) == COLUMNS  # which stays as it was


def test_other_rows_are_refused_without_an_id() -> None:
    table = pd.DataFrame(COLUMNS)
    result = result_of(table)
    with pytest.raises(InvalidData, match="in the same order"):
        result.to_frame(table[::-1])
    with pytest.raises(InvalidData, match="There is no column 'patient'"):
        result.to_frame(table.drop(columns="patient"))
    nameless = Result.of(Outcome(labels=np.array([0, 1])), None)
    with pytest.raises(InvalidData, match="The table has 3 rows and the result 2"):
        nameless.to_frame(table)
    with pytest.raises(InvalidData, match="ndarray is not a table of pandas"):
        nameless.to_frame(np.eye(2))


def test_a_notebook_shows_sizes_and_figures_and_no_row() -> None:
    shown = result_of(
        pd.DataFrame(COLUMNS),
        cluster_sizes=np.array([10, 20]),
        figures=[
            Figures(n_clusters=2, inertia=3.25),
            Figures(n_clusters=3, inertia=1.5),
        ],
        chosen=1,
    )._repr_html_()
    assert "<td>cluster 0</td><td>1</td><td>10</td>" in shown
    assert "<td>no cluster</td><td>1</td><td></td>" in shown
    assert "<td>*</td><td>3</td><td>1.5</td>" in shown
    for cell in ("52", "41", ">a<", "patient", "age"):
        assert cell not in shown


def test_a_picture_has_a_colour_for_each_cluster() -> None:
    table = pd.DataFrame(COLUMNS)
    root = ElementTree.fromstring(result_of(table).plot(table).svg)
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-3:] == ["no cluster", "cluster 0", "cluster 1"]
    with pytest.raises(InvalidData, match="The table has 2 rows and the result 3"):
        result_of(table).plot(table[:2])
    for other in (table[::-1], table.assign(patient=["x", "y", "z"])):
        with pytest.raises(InvalidData, match="in the same order"):
            result_of(table).plot(other)


# Ids that a spreadsheet would work out


HOSTILE = ("=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "\t=1", "\r=1")
HARMLESS = ("KV-1", "-1", "+4.5", "-1e-05", "1=1", "a@b", "", "a\n=1")


def written(path: Path, ids: tuple[str, ...], column: str = "id") -> Path:
    labels = np.full(len(ids), -1)
    more = {"membership_0": np.full(len(ids), -0.5)}
    return write_labels(path, labels, ids, (column,), more)


@pytest.mark.threat(177)
def test_what_begins_like_a_formula_is_counted_and_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "labels.csv", (*HOSTILE, *HARMLESS))
    assert count_formula_like_cells(path) == len(HOSTILE)
    whole = csv.ParseOptions(newlines_in_values=True)
    ids = csv.read_csv(path, parse_options=whole)["id"].to_pylist()
    assert tuple(ids) == (*HOSTILE, *HARMLESS)
    note = formula_advice(path)
    assert str(len(HOSTILE)) in note
    assert not [text for text in HOSTILE if text in note]


def test_formulas_are_counted_where_a_spreadsheet_computes_them(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    assert formula_advice(written(path, HARMLESS)) == ""
    assert count_formula_like_cells(written(path, HARMLESS, "=id")) == 1
    long = (*(f"KV-{n:08d}" for n in range(200_000)), "=1")
    assert count_formula_like_cells(written(path, long)) == 1, "it is read in parts"
    for ending in (".xlsx", ".parquet"):
        file = written(tmp_path / f"labels{ending}", HOSTILE)
        assert count_formula_like_cells(file) == 0
