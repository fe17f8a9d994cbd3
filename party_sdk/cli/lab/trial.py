"""What is tried: a table, or the rows of it that were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from clustering_protocols.numerics.data_source import keep_rows, matrix
from clustering_protocols.records.arrays import FloatArray, IntArray
from party_sdk.lab import AgreedFields
from party_sdk.tables import How, Table, column_names, open_as, read_column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTable:
    """A table on which methods are tried.

    source: all of it.
    X: float64 (n, m); the rows that are tried: all, or some of them; with a dictionary
        of fields.
    classes: int64 (n,).
    """

    how: How
    source: Table
    X: FloatArray = field(repr=False)
    classes: IntArray | None = field(repr=False)

    @property
    def columns(self) -> Sequence[str]:
        """Return the names of what is clustered."""
        return self.source.columns

    @property
    def agreed_fields(self) -> AgreedFields:
        """Return dictionary and preparation of the whole table, where there are any."""
        schema, preparation = self.how.schema, self.how.preparation
        return AgreedFields(
            dictionary=None if schema is None else [schema.used],
            preparation=None if preparation is None else [preparation],
        )


def read(
    data: Path,
    how: How,
    truth: str | None,
    *,
    row_limit: int | None = None,
    seed: int = 0,
) -> TrialTable:
    """Return a table; of one with more rows than the limit some, drawn by the seed."""
    classes = _classes(data, how, truth)
    source = open_as(data, _without(data, how, truth))
    if row_limit is None or source.n_rows <= row_limit:
        return TrialTable(how=how, source=source, X=matrix(source), classes=classes)
    drawn = np.random.default_rng(seed).permutation(source.n_rows)[:row_limit]
    rows = np.sort(drawn).astype(np.int64)
    return TrialTable(
        how=how,
        source=source,
        X=matrix(keep_rows(source, rows)),
        classes=None if classes is None else classes[rows],
    )


def _classes(data: Path, how: How, truth: str | None) -> IntArray | None:
    """Return the true classes as numbers, where a column holds them."""
    if truth is None:
        return None
    found = np.unique(read_column(data, truth, how), return_inverse=True)
    return found[1].astype(np.int64)


def _without(data: Path, how: How, truth: str | None) -> How:
    """Leave the true classes out of what is clustered."""
    if truth is None or how.columns is not None or how.schema is not None:
        return how
    left_out = {truth, *how.id_columns}
    names = column_names(data, how)
    return replace(how, columns=[name for name in names if name not in left_out])
