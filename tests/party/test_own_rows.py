"""A result beside the party's own table, in its kind of frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.contract import Outcome
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
    with pytest.raises(InvalidData, match="ndarray is no table of pandas"):
        nameless.to_frame(np.eye(2))
