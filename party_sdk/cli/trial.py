"""What is tried: a table, and all roles over it in one process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import Params
from clustering_protocols.data import keep_rows, matrix
from clustering_protocols.evaluation import Evaluation
from clustering_protocols.terms import Layout
from party_sdk.tables import How, Table, open_as
from party_sdk.tables.columns_of_files import column_names, read_column
from party_sdk.tables.names import naming
from party_sdk.trials.dealing import deal
from party_sdk.trials.layouts import Lattice
from party_sdk.trials.parties import Agreed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTable:
    """A table on which methods are tried.

    Attributes
    ----------
    source : Table
        All of it.
    X : float64 array of shape (n, m)
        The rows that are tried: all, or some of them; with a dictionary of fields.
    classes : int64 array of shape (n,), optional
    """

    how: How
    source: Table
    X: FloatArray = field(repr=False)
    classes: IntArray | None = field(repr=False)

    @property
    def columns(self) -> Sequence[str]:
        """Return the names of what is clustered."""
        return self.source.columns


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


def evaluate(
    table: TrialTable,
    params: Params,
    evaluation: Evaluation | None,
    lattice: Lattice,
    seed: int,
) -> simulation.Evaluated:
    """Simulate a session over a table, dealt out by the seed; measure its fidelity."""
    layout = Layout.lattice(*lattice)
    dealt = deal(table.X, table.columns, said_of(table.how), layout, seed)
    return simulation.evaluate(
        params,
        table.X,
        dealt.parts,
        seed,
        timer=time.perf_counter,
        evaluation=evaluation,
        dictionary=dealt.agreed.dictionary,
        preparation=dealt.agreed.preparation,
    )


def said_of(how: How) -> Agreed:
    """Return dictionary and preparation of a whole table, where there are any."""
    return Agreed(
        dictionary=None if how.schema is None else [how.schema],
        preparation=None if how.preparation is None else [how.preparation],
    )


def _classes(data: Path, how: How, truth: str | None) -> IntArray | None:
    """Return the true classes as numbers, where a column holds them."""
    if truth is None:
        return None
    found = np.unique(read_column(data, truth, how.dialect), return_inverse=True)
    return found[1].astype(np.int64)


def _without(data: Path, how: How, truth: str | None) -> How:
    """Leave the true classes out of what is clustered."""
    if truth is None or how.columns is not None or how.schema is not None:
        return how
    left_out = {truth, *naming(how.id_column)}
    names = column_names(data, how.dialect)
    return replace(how, columns=[name for name in names if name not in left_out])
