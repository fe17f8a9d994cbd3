"""Rows of Python values, written as text for the one reader of numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from party_sdk.tables.parsing.row_places import NumberedRows


def write_rows(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    copy: Path,
    first: int = 1,
    decimal: str = ".",
) -> NumberedRows:
    """Write rows as text, one line each, but empty ones; return how rows are called.

    first: the number of the first row.
    decimal: the sign of numbers.
    """
    empty = []
    with copy.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for number, row in enumerate(rows, first):
            cells = [as_text(value, decimal) for value in row]
            if any(cells):
                writer.writerow(cells)
            else:
                empty.append(number)
    return NumberedRows(first, empty)


def as_text(value: Any, decimal: str = ".") -> str:
    """Return a value as a text file has it: without loss, on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return (
            str(int(value))
            if value.is_integer() and abs(value) < 2**53
            else repr(value).replace(".", decimal)
        )
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    return " ".join(str(value).splitlines())
