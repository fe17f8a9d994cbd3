"""A table arrives at a session: read by its dictionary, or refused if it does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract.party import Memory
from clustering_protocols.data import DataSource, keep_rows
from clustering_protocols.errors import (
    CoterieError,
    GuardRefused,
    InvalidData,
    ShapeConflict,
)
from clustering_protocols.preparation.arrival import Arrival, arrive, shares_rows
from clustering_protocols.preparation.filling.stage import prepared
from clustering_protocols.preparation.statistics.by_leader import (
    Moments,
    PooledMoments,
    measure,
)
from clustering_protocols.recipe import Preparation, check_fields, whole_rows
from clustering_protocols.registry import check_terms
from clustering_protocols.schema import Schema
from clustering_protocols.terms import Terms
from clustering_protocols.wire.states import SlotState
from party_sdk.client import AnalystClient

# Libraries of tables are imported when rows are read
if TYPE_CHECKING:
    from party_sdk.tables import IdColumns


UNSCALED: Final = frozenset({"none", "center", "unit_norm"})
"""Scalings of protocols that keep a column's own unit."""


class Agreed(NamedTuple):
    """What terms say of the fields of a slot, if they do."""

    dictionary: Schema | None = None
    preparation: Preparation | None = None


def agreed_in(terms: Terms, slot: str) -> Agreed:
    """Return what terms say of the fields of a slot."""
    if terms.dictionary is None:
        return Agreed()
    column = terms.layout.slot(slot).column
    plan = terms.plan(slot)
    return Agreed(terms.dictionary[column], None if plan is None else plan.preparation)


def open_by(
    agreed: Agreed, table: Any, id_column: IdColumns, columns: list[str] | None
) -> DataSource:
    """Return a table as rows, with the fields of a dictionary in its order.

    Raises
    ------
    InvalidData
        If it cannot be read, or has other columns.
    """
    from party_sdk.tables import Table, open_table

    dictionary, preparation = agreed
    data = open_table(
        table,
        id_column=id_column,
        columns=columns,
        schema=dictionary,
        preparation=preparation,
    )
    if preparation is not None and not isinstance(data, Table):
        raise InvalidData(
            "The terms prepare fields by their names: bring a file or a data frame, not "
            "a matrix."
        )
    if dictionary is not None:
        check_fields(data, dictionary)
    return data


def arrival_of(terms: Terms, slot: str, data: DataSource) -> Arrival:
    """Return what the session sees of a table; its lines are named where ids recur."""
    from party_sdk.tables import Table

    params = check_terms(terms)
    try:
        return arrive(terms, params, slot, data)
    except InvalidData:
        form = partial(params.compared, shared=shares_rows(terms, slot))
        same = data.same_ids(form) if isinstance(data, Table) else ""
        if not same:
            raise
        raise InvalidData(same) from None


def clustered(
    terms: Terms, slot: str, memory: Memory, data: DataSource, labels: IntArray
) -> tuple[DataSource, IntArray]:
    """Return rows as the columns that were clustered, and their labels.

    Rows without a value that they need are left out.
    """
    plan = terms.plan(slot)
    if plan is None:
        return data, labels
    rows = whole_rows(data, plan)
    if rows is not None:
        data, labels = keep_rows(data, rows), labels[rows]
    return prepared(plan, data, memory), labels


def units_of(terms: Terms, slot: str, memory: Memory, data: DataSource) -> FloatArray:
    """Return by what the session divided each clustered column (m,) of a slot.

    By pooled moments where the session had them, else by those of the party's own rows.

    Parameters
    ----------
    data : DataSource
        The slot's rows as the columns that were clustered.
    """
    scaling = getattr(check_terms(terms), "scaling", "standard")
    if scaling in UNSCALED:
        return np.ones(len(data.columns))
    pooled: Moments | None = memory.get(PooledMoments)
    if scaling == "minmax":
        declared = terms.bounds(slot)
        if declared is not None and np.isfinite(declared).all():
            return declared.high - declared.low
        if pooled is None or not len(pooled.minimum):
            pooled = measure(data, moments=False, ranges=True)
        return pooled.maximum - pooled.minimum
    if pooled is None or not len(pooled.deviations):
        pooled = measure(data, moments=True, ranges=False)
    plan = terms.plan(slot)
    return pooled.spread if plan is None else plan.units(pooled.spread)


@contextmanager
def telling_refusals(client: AnalystClient, code: str) -> Iterator[None]:
    """Tell the others which check refuses this party, while its slot is free.

    They read the check's name and no value; with another table it may still come.
    """
    try:
        yield
    except (InvalidData, GuardRefused, ShapeConflict) as refused:
        with suppress(CoterieError):  # what refused is what the operator has to read
            client.decline(code, SlotState.REFUSED, refused.problem.slug)
        raise
