"""Co-occurrences in long form."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from scipy.sparse import random_array

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import SparseSource, matrix
from party_sdk.tables import LongForm, open_long_form, open_table, read_ids

LINES = {
    "customer": ["b", "a", "b", "b", "d"],
    "product": ["tea", "tea", "milk", "tea", "salt"],
    "n": [1, 2, 3, 4, 5],
}
FORM = LongForm("customer", "product", "n")


def opened(
    folder: Path,
    form: LongForm = FORM,
    objects: list[str] | None = None,
    **change: Any,
) -> SparseSource:
    path = folder / "lines.csv"
    csv.write_csv(pa.table(LINES | change), path)
    return open_long_form(path, form, objects)


def test_lines_become_sorted_rows_and_columns_and_repeats_add_up(
    tmp_path: Path,
) -> None:
    source = opened(tmp_path)
    assert source.ids == ("a", "b", "d")
    assert source.columns == ("milk", "salt", "tea")
    assert matrix(source).tolist() == [[0, 0, 2], [3, 0, 5], [0, 5, 0]]
    source = opened(tmp_path, LongForm.parse("customer, product"))
    assert matrix(source).tolist() == [[0, 0, 1], [1, 0, 2], [0, 1, 0]]


def test_a_list_of_objects_fixes_rows_and_adds_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "objects.txt").write_text("d\nc\n\nb \na\n")
    source = opened(tmp_path, objects=read_ids(tmp_path / "objects.txt"))
    assert source.ids == ("d", "c", "b", "a")
    assert matrix(source).tolist() == [[0, 5, 0], [0, 0, 0], [3, 0, 5], [0, 0, 2]]


@pytest.mark.parametrize(
    ("change", "form", "objects", "match"),
    [
        ({}, LongForm("client", "product"), None, "no column 'client'"),
        ({}, LongForm("customer", "product", "sum"), None, "no column 'sum'"),
        ({"customer": ["b", None, "b", "b", "d"]}, FORM, None, "1 lines have no"),
        ({"n": ["1", "x", "3", "4", "5"]}, FORM, None, "'A' is not a number"),
        ({"n": [1, None, 3, 4, 5]}, FORM, None, "1 lines have no 'n'"),
        ({}, FORM, ["a", "b"], "1 objects are not in the list"),
        ({"n": [1.0, float("inf"), 3.0, 4.0, 5.0]}, FORM, None, "infinite"),
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
        opened(tmp_path, form, objects, **change)


@pytest.mark.parametrize("text", ["a", "a,b,c,d", "a,", ""])
def test_a_form_names_two_or_three_columns(text: str) -> None:
    with pytest.raises(InvalidData, match="OBJECT,ITEM"):
        LongForm.parse(text)


def test_a_sparse_matrix_is_a_table_and_stays_sparse() -> None:
    R = random_array((50, 8), density=0.1, rng=np.random.default_rng(0))
    source = open_table(R)
    assert isinstance(source, SparseSource)
    assert np.array_equal(matrix(source), R.toarray())
