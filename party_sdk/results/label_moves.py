"""Two files of labels beside each other: which rows moved to another cluster."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.records.arrays import IntArray

_LABEL: Final = "label"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelMoves:
    """What became of the rows that both files name.

    n_common, n_gone, n_new: rows in both, in the first alone, in the second alone.
    n_moved: of the common ones, how many are in another cluster than before.
    counts: int64 (k, l); common rows by cluster before and after; -1 is the last line
        or column where rows have no cluster.
    before, after: the labels of lines and columns.
    matched: of each label before, the label after that counts as the same cluster.
    """

    n_common: int
    n_gone: int
    n_new: int
    n_moved: int
    counts: IntArray
    before: tuple[int, ...]
    after: tuple[int, ...]
    matched: Mapping[int, int]


def read_labels(path: Path) -> dict[str, int]:
    """Return the label of each id in a file that a run or 'party predict' wrote.

    Raises InvalidParameters if it is neither CSV nor Parquet, or cannot be read.
    Raises InvalidData if it has no ids and labels, or an id twice.
    """
    names, lines = _read(path)
    if _LABEL not in names or names.index(_LABEL) == 0:
        raise InvalidData(f"{path.name!r} has no ids before a column 'label'.")
    place, found, n_rows = names.index(_LABEL), {}, 0
    for n_rows, line in enumerate(lines, 1):  # noqa: B007  how many there were
        label = line[place] if place < len(line) else ""
        found["\x1f".join(line[:place])] = -1 if label == "" else int(label)
    if len(found) < n_rows:
        raise InvalidData(f"{path.name!r} names {n_rows - len(found)} rows twice.")
    return found


def compare_files(before: Path, after: Path, *, match: bool) -> LabelMoves:
    """Return which rows of two files of labels moved; see :func:`compare_labels`."""
    return compare_labels(read_labels(before), read_labels(after), match=match)


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns, and the lines as texts."""
    ending = path.suffix.lower()
    if ending not in {".csv", ".parquet", ".pq"}:
        raise InvalidParameters(
            f"{path.name!r} is neither .csv nor .parquet: write labels as one of them."
        )
    try:
        if ending == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                names, *lines = csv.reader(file)
            return names, lines
        from pyarrow import parquet

        table = parquet.read_table(path)
        columns = [table.column(n).to_pylist() for n in range(table.num_columns)]
        texts = [["" if v is None else str(v) for v in each] for each in columns]
        return table.column_names, list(map(list, zip(*texts, strict=True)))
    except (OSError, ValueError, csv.Error):
        raise InvalidParameters(f"{path.name!r} cannot be read as labels.") from None


def compare_labels(
    before: Mapping[str, int], after: Mapping[str, int], *, match: bool
) -> LabelMoves:
    """Return which of the common rows moved.

    match: whether clusters of the second are first matched with those of the first, as
        most rows say; else equal numbers are the same cluster.
    """
    common = [key for key in before if key in after]
    was = np.array([before[key] for key in common], dtype=np.int64)
    now = np.array([after[key] for key in common], dtype=np.int64)
    lines, columns = (tuple(sorted(set(each.tolist()))) for each in (was, now))
    counts = np.zeros((len(lines), len(columns)), dtype=np.int64)
    np.add.at(counts, (np.searchsorted(lines, was), np.searchsorted(columns, now)), 1)
    matched = _match(counts, lines, columns) if match else {c: c for c in lines}
    expected = np.array([matched.get(label, -2) for label in was.tolist()], np.int64)
    return LabelMoves(
        n_common=len(common),
        n_gone=len(before) - len(common),
        n_new=len(after) - len(common),
        n_moved=int(np.count_nonzero(expected != now)),
        counts=counts,
        before=lines,
        after=columns,
        matched=matched,
    )


def _match(
    counts: IntArray, lines: tuple[int, ...], columns: tuple[int, ...]
) -> dict[int, int]:
    """Return the pairs of clusters that share the most rows together (Kuhn 1955)."""
    from scipy.optimize import linear_sum_assignment

    rows, places = linear_sum_assignment(-counts)
    return {lines[r]: columns[c] for r, c in zip(rows, places, strict=True)}
