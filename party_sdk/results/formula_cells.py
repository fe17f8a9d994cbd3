"""Cells of a file of labels that a spreadsheet would work out: ids stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa

from party_sdk.results.label_files import is_text_file

_BEGINS: Final = r"^[=+\-@\t\r]"
_NUMBER: Final = r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$"


def formula_cells(path: Path) -> int:
    """Return how many cells of a file of labels begin like a formula.

    Only CSV can hold such: other files know a text from a formula.

    Raises OSError if there is no such file.
    """
    if not is_text_file(path):
        return 0
    from pyarrow import csv  # as in results: most parties look at none

    lines = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(path, parse_options=lines) as opened:
        names = opened.schema.names
    texts = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    with csv.open_csv(path, parse_options=lines, convert_options=texts) as batches:
        cells = sum(_count(column) for batch in batches for column in batch.columns)
    return cells + _count(pa.array(names))


def _count(texts: pa.Array) -> int:
    from pyarrow import compute

    begins = compute.match_substring_regex(texts, _BEGINS)
    is_number = compute.match_substring_regex(texts, _NUMBER)
    found = compute.and_not(begins, is_number)
    return int(compute.sum(found, min_count=0).as_py())


def formula_note(path: Path) -> str:
    """Return what to do about such cells; empty where there are none."""
    n_cells = formula_cells(path)
    if n_cells == 0:
        return ""
    begin = "1 cell begins" if n_cells == 1 else f"{n_cells} cells begin"
    return (
        f"{begin} like a formula (=, +, -, @): ids stand there as they are. Let a "
        "spreadsheet import the file as text, or write the labels as .xlsx or .parquet."
    )
