"""What is tried: a table, and all roles over it in one process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import Params
from clustering_protocols.data import keep_rows, matrix
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.evaluation import Evaluation
from clustering_protocols.recipe import Preparation
from clustering_protocols.schema import Field
from clustering_protocols.terms import Layout
from party_sdk.tables import How, Table, open_as
from party_sdk.tables.columns_of_files import column_names, read_column
from party_sdk.tables.names import naming


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
    lattice: tuple[int, int],
    seed: int,
) -> simulation.Evaluated:
    """Simulate a session over a table, dealt out by the seed; measure its fidelity."""
    agreed = agreed_fields(table, lattice[1])
    parts = simulation.split(
        table.X,
        Layout.lattice(*lattice),
        seed,
        table.columns,
        dictionary=agreed["dictionary"],
    )
    return simulation.evaluate(
        params,
        table.X,
        parts,
        seed,
        timer=time.perf_counter,
        evaluation=evaluation,
        **agreed,
    )


def agreed_fields(table: TrialTable, n_groups: int) -> dict[str, Any]:
    """Return dictionary and preparation of each column group, where there are any.

    The fields are dealt out to the groups in their order.
    """
    schema, said = table.how.schema, table.how.preparation
    if schema is None:
        return {"dictionary": None, "preparation": None}
    fields = [schema.field(name) for name in table.columns]
    ends = np.linspace(0, len(fields), n_groups + 1).round().astype(int)
    groups = [tuple(fields[begin:end]) for begin, end in pairwise(ends)]
    if not all(groups):
        raise InvalidParameters("There are more column groups than fields.")
    return {
        "dictionary": [schema.model_copy(update={"fields": group}) for group in groups],
        "preparation": None if said is None else [_of(said, group) for group in groups],
    }


def _of(said: Preparation, fields: Sequence[Field]) -> Preparation:
    names = {field.name for field in fields}
    own = tuple(each for each in said.fields if each.name in names)
    return Preparation(missing=said.missing, fields=own)


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
