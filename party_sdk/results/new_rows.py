"""New rows with their labels: what a party gets of them. Nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from clustering_protocols.contract import Placement
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from coterie_pages.models import NewRowsSummary
from party_sdk.results.label_files import encode_labels, naming_of, write_labels


class Review(Protocol):
    """New rows beside the trained ones, before and after they have labels."""

    @property
    def doubt(self) -> str:
        """Return what to ask before they get labels; empty where they look alike."""

    def summarise(self, placement: Placement) -> tuple[FloatArray, NewRowsSummary]:
        """Return the share of columns outside of each row, and what is said of all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewRows:
    """New rows with their labels, in the order of their table.

    labels: int64 (n_rows,); -1 for rows that lack a value which they need.
    distances: float64 (n_rows,) or None; from each row to the centre of its cluster, in
        the units in which the session compared rows; NaN for rows without a label. None
        where a party knows no centre.
    centre_distances: float64 (n_rows, n_clusters) or None; the same to every centre.
    outside: float64 (n_rows,) or None; the share of a row's columns outside the trained
        range; NaN for rows without a label. None in a simulation.
    summary: what may be said of them as a whole, without any row; None in a simulation,
        where no home keeps trained rows.
    ids, naming: what names the rows, and the columns that hold it.
    """

    labels: IntArray = field(repr=False)
    distances: FloatArray | None = field(repr=False)
    centre_distances: FloatArray | None = field(repr=False)
    outside: FloatArray | None = field(repr=False)
    summary: NewRowsSummary | None
    ids: Sequence[str] | None = field(repr=False)
    naming: tuple[str, ...]

    @classmethod
    def of(
        cls, placement: Placement, data: DataSource, review: Review | None
    ) -> NewRows:
        """Return new rows as they were placed, beside the trained ones."""
        outside, summary = (
            (None, None) if review is None else review.summarise(placement)
        )
        return cls(
            labels=placement.labels,
            distances=placement.own_distances,
            centre_distances=placement.distances,
            outside=outside,
            summary=summary,
            ids=data.ids,
            naming=naming_of(data),
        )

    def save(self, path: str | Path) -> Path:
        """Write labels, distances and shares: CSV, Parquet or Excel by the ending."""
        return write_labels(
            Path(path), self.labels, self.ids, self.naming, self._columns
        )

    def encode(self, ending: str) -> bytes:
        """Return what :meth:`save` writes into a file with this ending, such as .csv."""
        return encode_labels(ending, self.labels, self.ids, self.naming, self._columns)

    @property
    def _columns(self) -> Mapping[str, FloatArray]:
        """Return what stands beside the labels; what is not known has no column."""
        known = {"distance": self.distances, "outside": self.outside}
        return {name: values for name, values in known.items() if values is not None}
