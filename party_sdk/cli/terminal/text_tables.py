"""Cells as aligned lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows of cells as lines in which columns stand under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(cell.ljust(width) for cell, width in cells).rstrip()
