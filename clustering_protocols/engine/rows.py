"""What roles see of a party's rows: prepared as agreed, and those that take part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clustering_protocols.contract import Outcome, Placement, SessionContext
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.published import OUTSIDE, Selection
from clustering_protocols.numerics.data_source import DataSource, keep_rows
from clustering_protocols.shared_stages.imputation import prepare_rows
from clustering_protocols.terms.preparation import (
    check_fields,
    clustered_columns,
    whole_rows,
)


def rows_of(
    session: SessionContext,
    slot: str,
    memory: Memory,
    data: DataSource,
    *,
    fields: bool = False,
) -> DataSource:
    """Return the rows that the roles of a slot see at this point of a session.

    ``fields``: as the dictionary describes them, not as the columns that are clustered.
    """
    selection = memory.get(Selection)
    rows = data if fields else _take_clustered(session, slot, memory, data)
    return rows if selection is None else keep_rows(rows, selection.rows)


def _take_clustered(
    session: SessionContext, slot: str, memory: Memory, data: DataSource
) -> DataSource:
    plan, schema = session.terms.plan(slot), session.terms.dictionary_of(slot)
    rows = clustered_columns(data, schema)
    return rows if plan is None else prepare_rows(plan, rows, memory)


def wrap_predict(
    session: SessionContext, slot: str, memory: Memory, outcome: Outcome
) -> Outcome:
    """Return an outcome that prepares new rows as those of the session were.

    Rows that would not have taken part get the label -1.
    """
    plan, predict = session.terms.plan(slot), outcome.predict
    schema = session.terms.dictionary_of(slot)
    if predict is None or (plan is None and schema is None):
        return outcome

    def place_fields(data: DataSource) -> Placement:
        data = clustered_columns(data, schema)
        if plan is None:
            return predict(data)
        check_fields(data, plan.schema)
        rows = whole_rows(data, plan)
        if rows is None:
            return predict(prepare_rows(plan, data, memory))
        found = predict(prepare_rows(plan, keep_rows(data, rows), memory))
        labels = np.full(data.n_rows, OUTSIDE, dtype=np.int64)
        labels[rows] = found.labels
        if found.distances is None:
            return Placement(labels=labels)
        distances = np.full((data.n_rows, found.distances.shape[1]), np.nan)
        distances[rows] = found.distances
        return Placement(labels=labels, distances=distances)

    return replace(outcome, predict=place_fields)
