"""A table that was read: its rows as numbers, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.arrays import FloatArray, IntArray
from party_sdk.tables.columns import Column
from party_sdk.tables.places import Places
from party_sdk.tables.report import MOST_SHOWN, CheckReport, Findings
from party_sdk.tables.spool import ArrowIds, Spool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A data source over a table that was read to its end.

    Each batch has a column per field, in the dictionary's order (the table's, without
    one): numbers, 0 or 1 of yes and no, the place of a level among the dictionary's,
    days since 1970-01-01; NaN where there is no value.

    Attributes
    ----------
    report : CheckReport
    naming : tuple of str
        The columns that name the rows.
    file : Path or None
        Where it came from.
    unfit : Findings
        What hinders to cluster it as it is, with no preparation agreed: gaps, words.
    """

    report: CheckReport
    naming: tuple[str, ...]
    file: Path | None
    described: tuple[Column, ...]
    ids: ArrowIds | None
    places: Places
    unfit: Findings
    spool: Spool

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return self.spool.n_rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns to cluster."""
        return tuple(column.name for column in self.described)

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows; NaN is no value, where a preparation meets gaps."""
        return self.spool.batches()

    def take(self, rows: IntArray) -> FloatArray:
        """Return a copy of the rows with these numbers, whichever the order."""
        return self.spool.take(rows)

    def same_ids(self, compared: Callable[[str], str] | None = None) -> str:
        """Return which rows have the same id, as a sentence; empty where none have.

        At most ten pairs, by their lines or rows; no id is named.

        Parameters
        ----------
        compared : callable, optional
            Returns an id in the form in which it counts; as it is by default.
        """
        if self.ids is None:
            return ""
        ids = self.ids
        if compared is not None:
            ids = ArrowIds([pa.array(map(compared, ids), pa.large_string())])
        coded = ids.arrow.combine_chunks().dictionary_encode().indices
        places = coded.to_numpy(zero_copy_only=False)
        if compute.max(coded).as_py() == len(places) - 1:
            return ""
        first: np.ndarray[tuple[int], np.dtype[np.int64]]
        _, first = np.unique(places, return_index=True)
        again = np.setdiff1d(np.arange(len(places)), first)
        shown = again[:MOST_SHOWN]
        rows = sorted({*map(int, first[places[shown]]), *map(int, shown)})
        named = dict(zip(rows, self.places.of(rows), strict=True))
        pairs = [f"{named[int(first[places[r]])]} and {named[int(r)]}" for r in shown]
        more = (
            f", and {len(again) - len(shown)} more" if len(again) > len(shown) else ""
        )
        word = self.report.counts.capitalize()
        return f"{word}s {', '.join(pairs)}{more} have the same id."
