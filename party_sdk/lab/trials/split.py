"""One table, dealt out to the parties of a simulated session by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Field
from clustering_protocols.terms.terms import Layout
from party_sdk.lab.trials.parties import AgreedFields, Deal


def deal(
    X: FloatArray,
    columns: Sequence[str],
    said: AgreedFields,
    layout: Layout,
    seed: int,
    *,
    named: bool = True,
    ids: Sequence[str] | None = None,
    naming: tuple[str, ...] = (),
) -> Deal:
    """Deal a table out, rows and columns shuffled by the seed; fields in their order.

    said: at most one dictionary and one preparation, of the whole table.

    Raises InvalidParameters if there are more groups than rows or columns.
    """
    agreed = fields_of_groups(X.shape, columns, said, layout)
    return Deal(
        parts=simulation.split(X, layout, seed, columns, dictionary=agreed.dictionary),
        columns=columns,
        named=named,
        agreed=agreed,
        table=X,
        ids=ids,
        naming=naming,
    )


def fields_of_groups(
    shape: Sequence[int], columns: Sequence[str], said: AgreedFields, layout: Layout
) -> AgreedFields:
    """Return dictionary and preparation of each column group, where there are any.

    The fields are dealt out to the groups in their order.

    Raises InvalidParameters if there are more groups than rows or columns.
    """
    groups = (layout.n_row_groups, layout.n_column_groups)
    for size, wanted, what in zip(shape, groups, ("row", "column"), strict=True):
        if size < wanted:
            raise InvalidParameters(
                f"{size} {what}s do not make {wanted} {what} groups."
            )
    schema, preparation = said.of(0)
    if schema is None:
        return AgreedFields()
    fields = [schema.field(name) for name in columns]
    ends = np.linspace(0, len(fields), layout.n_column_groups + 1).round().astype(int)
    parts = [tuple(fields[begin:end]) for begin, end in pairwise(ends)]
    if not all(parts):
        raise InvalidParameters("There are more column groups than fields.")
    for number, part in enumerate(parts, 1):
        if all(field.role == "describe" for field in part):
            raise InvalidParameters(
                f"Column group {number} would have no field to cluster: change the order "
                "of the fields, or take fewer column groups."
            )
    return AgreedFields(
        dictionary=[schema.model_copy(update={"fields": part}) for part in parts],
        preparation=None
        if preparation is None
        else [_of(preparation, part) for part in parts],
    )


def _of(said: Preparation, fields: Sequence[Field]) -> Preparation:
    names = {field.name for field in fields}
    own = tuple(each for each in said.fields if each.name in names)
    return Preparation(missing=said.missing, fields=own)
