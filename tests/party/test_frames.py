"""Tables in, labels out."""

import json
import resource
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy.sparse import random_array

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.contract import Outcome
from clustering_protocols.numerics.data_source import (
    BATCH_ROWS,
    MatrixSource,
    SparseSource,
    matrix,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from party_sdk.results.results import Result
from party_sdk.tables import (
    DEFAULTS,
    LongForm,
    examine_table,
    list_columns,
    open_long_form,
    open_table,
    read_ids,
)
from party_sdk.tables.table import Spool

COLUMNS = {
    "id": ["007", "8", "x,9"],
    "age": [30, 41, 52],
    "weight": [70.5, 80.0, 90.25],
    "smokes": [True, False, True],
}
NUMBERS = np.array([[30, 70.5, 1], [41, 80.0, 0], [52, 90.25, 1]])


def as_csv(columns: dict[str, Any], folder: Path) -> Path:
    path = folder / "rows.csv"
    csv.write_csv(pa.table(columns), path)
    return path


def as_parquet(columns: dict[str, Any], folder: Path) -> Path:
    path = folder / "rows.PARQUET"
    parquet.write_table(pa.table(columns), path)
    return path


TABLES: dict[str, Callable[[dict[str, Any], Path], Any]] = {
    "csv": as_csv,
    "csv as text": lambda columns, folder: str(as_csv(columns, folder)),
    "parquet": as_parquet,
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "polars": lambda columns, _: pl.DataFrame(columns),
    "pyarrow": lambda columns, _: pa.table(columns),
}


def of_kinds(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("make", [TABLES[k] for k in kinds], ids=kinds)


every_table = of_kinds(*TABLES)
Make = Callable[[dict[str, Any], Path], Any]


@every_table
def test_every_kind_of_table_gives_the_same_rows(make: Make, tmp_path: Path) -> None:
    source = open_table(make(COLUMNS, tmp_path), id_column="id")
    assert matrix(source).tolist() == NUMBERS.tolist()
    assert matrix(source).dtype == np.float64
    assert list(source.columns) == ["age", "weight", "smokes"]
    assert source.ids == ("007", "8", "x,9")
    assert source.n_rows == 3


def test_an_index_of_pandas_is_no_column() -> None:
    table = pd.DataFrame(COLUMNS, index=pd.Index([5, 3, 3], name="age"))
    source = open_table(table, id_column="id")
    assert list(source.columns) == ["age", "weight", "smokes"]
    assert matrix(source).tolist() == NUMBERS.tolist()


@every_table
def test_chosen_columns_come_in_the_order_of_choice(make: Make, tmp_path: Path) -> None:
    table = make(COLUMNS, tmp_path)
    source = open_table(table, columns=["weight", "age"])
    assert matrix(source).tolist() == NUMBERS[:, [1, 0]].tolist()
    assert source.ids is None


MOMENTS = [datetime.fromisoformat(t) for t in ("2024-01-31", "2024-02-01T12:30")]


@of_kinds("parquet", "pandas", "polars", "pyarrow")
@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ([7, 8], ("7", "8")),
        ([7.0, 8.0], ("7", "8")),
        ([7.5, 8.0], ("7.5", "8")),
        (MOMENTS, ("2024-01-31", "2024-02-01 12:30:00")),
        ([True, False], ("true", "false")),
    ],
)
def test_ids_are_written_alike_by_every_kind_of_table(
    make: Make, tmp_path: Path, given: list[Any], texts: tuple[str, ...]
) -> None:
    table = make({"id": given, "x": [1, 2]}, tmp_path)
    assert open_table(table, id_column="id").ids == texts


def test_names_of_a_parquet_file_stay_as_they_are(tmp_path: Path) -> None:
    columns = {"Age": [1.0], "age": [2.0], "in": [{"a": 1, "b": {"c": 2}}], "x": [3.0]}
    path = as_parquet(columns, tmp_path)
    assert list_columns(path) == ["Age", "age", "in", "x"]
    source = open_table(path, columns=["x", "age", "Age"])
    assert matrix(source).tolist() == [[3, 2, 1]]


def test_a_column_of_no_known_kind_is_refused() -> None:
    for values in ([1j, 2], [1, "a"], [object(), None]):
        with pytest.raises(InvalidData, match="'x': its values are of several kinds"):
            open_table(pd.DataFrame({"x": values}))
        assert examine_table(pd.DataFrame({"x": values}), DEFAULTS)[0].file == ""


@every_table
def test_ids_stay_as_they_are_written(make: Make, tmp_path: Path) -> None:
    ids = ["007", "07", "7", "1e3", "-0", "NaN", "NA", "true"]
    ids += ["\ufb01ve", "e\u0301", "\uff17", "Bett\u00bd0"]
    table = make({"id": ids, "x": range(len(ids))}, tmp_path)
    assert open_table(table, id_column="id").ids == tuple(ids)


def test_ids_equal_in_unicode_are_refused_when_compared() -> None:
    table = pa.table({"id": ["\u00e9", "e\u0301"], "x": [1, 2]})
    with pytest.raises(InvalidData, match="Rows 1 and 2 have the same id"):
        Alignment().identify_rows(open_table(table, id_column="id"))


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8"]
)
def test_a_matrix_of_numbers_is_a_table(dtype: str) -> None:
    source = open_table(np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype))
    assert matrix(source).tolist() == [[1, 0], [0, 1], [1, 1]]
    assert matrix(source).dtype == np.float64
    assert list(source.columns) == ["x0", "x1"]


def test_a_source_of_rows_is_taken_as_it_is() -> None:
    class Streamed:
        n_rows, columns, ids = 2, ("a",), None

        def batches(self) -> Iterator[np.ndarray[Any, Any]]:
            yield np.ones((1, 1))
            yield np.zeros((1, 1))

    for source in (MatrixSource([[1.0]]), Streamed()):
        assert open_table(source) is source


@every_table
@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (
            {"x": [1], "name": ["a"], "city": ["b"]},
            {},
            "'name', 'city' hold words: describe them",
        ),
        (
            {"x": [1.0, None, None], "y": [None, 1, 2]},
            {},
            r"[12], y: empty; .* [23], x: empty",
        ),
        ({"x": [1], "y": [2]}, {"columns": ["x", "z", "w"]}, "no column 'z', 'w'"),
        ({"x": [1], "y": [2]}, {"id_column": "id"}, "no column 'id'"),
        ({"id": ["a"]}, {"id_column": "id"}, "no column to cluster"),
        ({"x": [1], "y": [2]}, {"columns": ["x", "x"]}, "named twice"),
        ({"x": [1.0, float("inf")]}, {}, "x: an infinite value"),
        ({"x": [1.0, float("nan")], "y": [1, 2]}, {}, "[23], x: empty"),
        ({"id": ["a", None], "x": [1, 2]}, {"id_column": "id"}, "[23], id: no id"),
    ],
    ids=[
        "texts",
        "gaps",
        "columns that are not there",
        "an id column that is not there",
        "nothing but ids",
        "a column twice",
        "infinity",
        "not a number",
        "a row without an id",
    ],
)
def test_a_table_that_cannot_be_used_says_where(
    make: Make, tmp_path: Path, columns: Any, options: Any, words: str
) -> None:
    with pytest.raises(InvalidData, match=words):
        open_table(make(columns, tmp_path), **options)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([["a", "b"]]), "contains no numbers"),
        (np.array([[1, "b"]], dtype=object), "contains no numbers"),
        (np.array([[1 + 2j]]), "contains no numbers"),
        (np.array([["2026-01-01"]], dtype="M8[D]"), "contains no numbers"),
        (np.array([1.0, 2.0]), "matrix"),
        (np.ones((2, 2, 2)), "matrix"),
        (np.ones((0, 3)), "matrix"),
        (np.ones((3, 0)), "matrix"),
        (np.array([[1.0, np.nan], [np.inf, 1.0]]), "2 rows .* x0, x1"),
    ],
)
def test_an_array_that_is_no_matrix_of_numbers_is_refused(
    array: Any, words: str
) -> None:
    with pytest.raises(InvalidData, match=words) as raised:
        open_table(array)
    assert "'b'" not in str(raised.value), "no value is repeated"


def result(ids: tuple[str, ...] | None, *, memberships: bool = False) -> Result:
    outcome = Outcome(
        labels=np.array([1, 0, 1]),
        cluster_sizes=np.array([1, 2]),
        memberships=np.array([[0.1, 0.9], [1, 0], [0.25, 0.75]])
        if memberships
        else None,
    )
    return Result.of(outcome, MatrixSource(np.zeros((3, 1)), ids=ids))


def saved(given: Result, path: Path) -> dict[str, list[Any]]:
    """What is in the file after saving, read by another library."""
    assert given.save(str(path)) == path
    if path.suffix == ".csv":
        return pl.read_csv(path, schema_overrides={"id": pl.String}).to_dict(
            as_series=False
        )
    return pl.read_parquet(path).to_dict(as_series=False)


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet", "labels.pq"])
def test_labels_are_saved_beside_ids_or_numbers_of_rows(
    tmp_path: Path, name: str
) -> None:
    ids = ("007", 'say "x,9"', "line\nbreak")
    found = saved(result(ids), tmp_path / name)
    assert found == {"id": list(ids), "label": [1, 0, 1]}
    found = saved(result(None, memberships=True), tmp_path / name)
    assert [str(number) for number in found["id"]] == ["0", "1", "2"]
    assert found["membership_0"] == [0.1, 1.0, 0.25]
    assert found["membership_1"] == [0.9, 0.0, 0.75]


def test_a_result_shows_no_label_and_no_id() -> None:
    shown = repr(result(("patient-1", "patient-2", "patient-3")))
    assert "patient" not in shown
    assert "[1" not in shown.replace("[1 2]", "").replace("[1, 2]", "")


LARGE = {
    "id": [f"p{i}" for i in range(70_000)],
    "x": np.arange(70_000) / 7.0 % 5,
    "n": np.arange(70_000) % 11,
}


@of_kinds("csv", "parquet")
def test_a_large_file_is_read_in_batches_any_number_of_times(
    make: Make, tmp_path: Path
) -> None:
    source = open_table(make(LARGE, tmp_path), id_column="id")
    assert (source.n_rows, list(source.columns)) == (70_000, ["x", "n"])
    assert source.ids is not None
    assert list(source.ids) == LARGE["id"]
    assert max(len(batch) for batch in source.batches()) < 70_000
    assert np.array_equal(matrix(source), np.column_stack([LARGE["x"], LARGE["n"]]))
    next(source.batches())[:] = 0
    assert matrix(source)[1, 1] == 1, "what a role writes stays in its pass"


WARDS: dict[str, Any] = {"ward": ["A ", "ab"], "bed": ["01", "c"], "x": [1.0, 2.0]}


@every_table
def test_several_columns_name_a_row_together(make: Make, tmp_path: Path) -> None:
    source = open_table(make(WARDS, tmp_path), id_column=["ward", "bed"])
    assert [json.loads(name) for name in source.ids or ()] == [
        ["A ", "01"],
        ["ab", "c"],
    ]
    assert list(source.columns) == ["x"]


@pytest.mark.parametrize(
    ("naming", "beds", "words"),
    [
        (["ward", "room"], ["01", "c"], "no column 'room'"),
        (["ward", "ward"], ["01", "c"], "id column is named twice"),
        (["ward", "bed"], ["01", None], "row 2, ward, bed: no id"),
    ],
)
def test_columns_that_cannot_name_rows_are_refused(
    naming: list[str], beds: list[Any], words: str
) -> None:
    with pytest.raises(InvalidData, match=words):
        open_table(pa.table(WARDS | {"bed": beds}), id_column=naming)


# Rows in a file without a name


def test_batches_are_independent_copies_of_the_rows() -> None:
    X = np.arange(3.0 * (BATCH_ROWS + 5)).reshape(-1, 3)  # no whole number of pages
    spool = Spool(3)
    spool.write(X[:100])
    spool.write(X[100:])

    for _ in range(2):
        pieces = list(spool.batches())
        assert [len(piece) for piece in pieces] == [BATCH_ROWS, 5]
        assert np.array_equal(np.concatenate(pieces), X)
        for piece in pieces:
            piece[:] = -1.0
    assert np.array_equal(spool.take(np.array([BATCH_ROWS, 0])), X[[BATCH_ROWS, 0]])


class Table(Spool):
    columns = ("x",)
    ids = None


def test_all_rows_are_read_without_holding_a_map_of_each_piece() -> None:
    few = resource.getrlimit(resource.RLIMIT_NOFILE)
    table = Table(1)
    table.write(np.arange(40.0 * BATCH_ROWS)[:, None])
    opened = len([*Path("/proc/self/fd").iterdir()])
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, few[1]))
    try:
        X = matrix(table)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, few)
    assert np.array_equal(X[:, 0], np.arange(40.0 * BATCH_ROWS))


# Co-occurrences in long form


LINES = {
    "customer": ["b", "a", "b", "b", "d"],
    "product": ["tea", "tea", "milk", "tea", "salt"],
    "n": [1, 2, 3, 4, 5],
}
LONG = LongForm("customer", "product", "n")


def open_lines(
    folder: Path,
    form: LongForm = LONG,
    objects: list[str] | None = None,
    **change: Any,
) -> SparseSource:
    path = folder / "lines.csv"
    csv.write_csv(pa.table(LINES | change), path)
    return open_long_form(path, form, objects)


def test_lines_become_sorted_rows_and_columns_and_repeats_add_up(
    tmp_path: Path,
) -> None:
    source = open_lines(tmp_path)
    assert source.ids == ("a", "b", "d")
    assert source.columns == ("milk", "salt", "tea")
    assert matrix(source).tolist() == [[0, 0, 2], [3, 0, 5], [0, 5, 0]]
    source = open_lines(tmp_path, LongForm.parse("customer, product"))
    assert matrix(source).tolist() == [[0, 0, 1], [1, 0, 2], [0, 1, 0]]


def test_a_list_of_objects_fixes_rows_and_adds_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "objects.txt").write_text("d\nc\n\nb \na\n")
    source = open_lines(tmp_path, objects=read_ids(tmp_path / "objects.txt"))
    assert source.ids == ("d", "c", "b", "a")
    assert matrix(source).tolist() == [[0, 5, 0], [0, 0, 0], [3, 0, 5], [0, 0, 2]]


@pytest.mark.parametrize(
    ("change", "form", "objects", "match"),
    [
        ({}, LongForm("client", "product"), None, "no column 'client'"),
        ({}, LongForm("customer", "product", "sum"), None, "no column 'sum'"),
        ({"customer": ["b", None, "b", "b", "d"]}, LONG, None, "1 lines have no"),
        ({"n": ["1", "x", "3", "4", "5"]}, LONG, None, "'A' is not a number"),
        ({"n": [1, None, 3, 4, 5]}, LONG, None, "1 lines have no 'n'"),
        ({}, LONG, ["a", "b"], "1 objects are not in the list"),
        ({"n": [1.0, float("inf"), 3.0, 4.0, 5.0]}, LONG, None, "infinite"),
    ],
)
def test_what_cannot_be_used_is_named_but_never_shown(
    tmp_path: Path,
    change: dict[str, Any],
    form: LongForm,
    objects: list[str] | None,
    match: str,
) -> None:
    with pytest.raises(InvalidData, match=match):
        open_lines(tmp_path, form, objects, **change)


@pytest.mark.parametrize("text", ["a", "a,b,c,d", "a,", ""])
def test_a_form_names_two_or_three_columns(text: str) -> None:
    with pytest.raises(InvalidData, match="OBJECT,ITEM"):
        LongForm.parse(text)


def test_a_sparse_matrix_is_a_table_and_stays_sparse() -> None:
    R = random_array((50, 8), density=0.1, rng=np.random.default_rng(0))
    source = open_table(R)
    assert isinstance(source, SparseSource)
    assert np.array_equal(matrix(source), R.toarray())
