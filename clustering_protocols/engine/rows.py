"""What roles see of a party's rows: prepared as agreed, and those that take part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clustering_protocols.arrays import IntArray
from clustering_protocols.contract import Outcome, SessionContext
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.selection import OUTSIDE, Selection
from clustering_protocols.data import DataSource, keep_rows
from clustering_protocols.preparation.filling.stage import prepared
from clustering_protocols.recipe import check_fields, whole_rows


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
    plan = None if fields else session.terms.plan(slot)
    selection = memory.get(Selection)
    rows = data if plan is None else prepared(plan, data, memory)
    return rows if selection is None else keep_rows(rows, selection.rows)


def predicting(
    session: SessionContext, slot: str, memory: Memory, outcome: Outcome
) -> Outcome:
    """Return an outcome that prepares new rows as those of the session were.

    Rows that would not have taken part get the label -1.
    """
    plan, predict = session.terms.plan(slot), outcome.predict
    if plan is None or predict is None:
        return outcome

    def predict_fields(data: DataSource) -> IntArray:
        check_fields(data, plan.schema)
        rows = whole_rows(data, plan)
        if rows is None:
            return predict(prepared(plan, data, memory))
        labels = np.full(data.n_rows, OUTSIDE, dtype=np.int64)
        labels[rows] = predict(prepared(plan, keep_rows(data, rows), memory))
        return labels

    return replace(outcome, predict=predict_fields)
