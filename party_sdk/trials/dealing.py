"""One table, dealt out to the parties of a simulated session by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.arrays import FloatArray
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.recipe import Preparation
from clustering_protocols.schema import Field
from clustering_protocols.terms import Layout
from party_sdk.trials.layouts import check_size
from party_sdk.trials.parties import Agreed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dealt:
    """A table, and which of its rows and columns each party holds.

    Attributes
    ----------
    pooled : float64 array of shape (n, m)
        With a dictionary fields, NaN where there is no value.
    columns : sequence of str
    ids : sequence of str, optional
        Of its rows, where it names them.
    naming : tuple of str
        The columns that hold them.
    """

    pooled: FloatArray = field(repr=False)
    columns: Sequence[str]
    ids: Sequence[str] | None = field(repr=False)
    naming: tuple[str, ...]
    parts: simulation.Split
    agreed: Agreed

    def ids_of(self, slot: str) -> list[str]:
        """Return the ids of a party's rows; without any, their numbers in the table."""
        rows = self.parts.held[slot].tolist()
        return [str(row) if self.ids is None else self.ids[row] for row in rows]


def deal(
    X: FloatArray,
    columns: Sequence[str],
    said: Agreed,
    layout: Layout,
    seed: int,
    *,
    ids: Sequence[str] | None = None,
    naming: tuple[str, ...] = (),
) -> Dealt:
    """Deal a table out, rows and columns shuffled by the seed; fields in their order.

    Parameters
    ----------
    said : Agreed
        At most one dictionary and one preparation, of the whole table.

    Raises
    ------
    InvalidParameters
        If there are more groups than rows or columns.
    """
    check_size(X.shape, layout)
    agreed = agreed_fields(columns, said, layout.n_column_groups)
    parts = simulation.split(X, layout, seed, columns, dictionary=agreed.dictionary)
    return Dealt(
        pooled=X,
        columns=columns,
        ids=ids,
        naming=naming,
        parts=parts,
        agreed=agreed,
    )


def agreed_fields(columns: Sequence[str], said: Agreed, n_groups: int) -> Agreed:
    """Return dictionary and preparation of each column group, where there are any.

    The fields are dealt out to the groups in their order.
    """
    schema, preparation = said.of(0)
    if schema is None:
        return Agreed()
    fields = [schema.field(name) for name in columns]
    ends = np.linspace(0, len(fields), n_groups + 1).round().astype(int)
    groups = [tuple(fields[begin:end]) for begin, end in pairwise(ends)]
    if not all(groups):
        raise InvalidParameters("There are more column groups than fields.")
    return Agreed(
        dictionary=[schema.model_copy(update={"fields": group}) for group in groups],
        preparation=None
        if preparation is None
        else [_of(preparation, group) for group in groups],
    )


def _of(said: Preparation, fields: Sequence[Field]) -> Preparation:
    names = {field.name for field in fields}
    own = tuple(each for each in said.fields if each.name in names)
    return Preparation(missing=said.missing, fields=own)
