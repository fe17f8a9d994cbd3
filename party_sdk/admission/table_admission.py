"""Admit a table to a session, or refuse it if it does not satisfy the terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, Self

import numpy as np

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import DataSource, keep_rows
from clustering_protocols.numerics.moments import PooledMoments, measure_moments
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.alignment import id_patterns
from clustering_protocols.shared_stages.alignment.cell_values import missing_ids_note
from clustering_protocols.shared_stages.alignment.match_keys import (
    KeyValues,
    compute_key_values,
)
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.shared_stages.imputation import prepare_rows
from clustering_protocols.shared_stages.row_selection import (
    AdmittedTable,
    admit_table,
    shares_rows,
)
from clustering_protocols.shared_stages.statistics.ranges import PooledRanges
from clustering_protocols.terms.preparation import (
    Preparation,
    check_field_order,
    find_usable_rows,
    select_clustered_columns,
    select_placing_fields,
)
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Terms

UNSCALED: Final = frozenset({"none", "center", "unit_norm"})
"""Values of the parameter ``scaling`` that do not change the unit of a column."""
_LEAST_COMPLETE: Final = 0.5


class SlotFields(NamedTuple):
    """The dictionary, preparation and match columns that the terms set for a slot.

    match_key_columns: the columns of the match keys; empty if rows are linked by ids.
    """

    dictionary: Schema | None = None
    preparation: Preparation | None = None
    match_key_columns: tuple[str, ...] = ()

    def of_new_rows(self, columns: Sequence[str]) -> tuple[Self, Sequence[str]]:
        """Return the fields and columns of new rows, which are not linked or described.

        columns: the columns of the session, used if the terms have no dictionary.
        """
        if self.dictionary is None:
            return self._replace(match_key_columns=()), columns
        schema = select_placing_fields(self.dictionary, self.preparation)
        return self._replace(dictionary=schema, match_key_columns=()), schema.names


def slot_fields_of(terms: Terms, slot: str) -> SlotFields:
    """Return the fields that the terms set for the table of a slot."""
    plan = terms.plan(slot)
    return SlotFields(
        terms.dictionary_of(slot),
        None if plan is None else plan.preparation,
        match_key_columns_of(terms, slot),
    )


def match_key_columns_of(terms: Terms, slot: str) -> tuple[str, ...]:
    """Return the columns of a slot's match keys; empty if rows are linked by ids."""
    params = check_terms(terms)
    return tuple(params.match_key_columns) if shares_rows(terms, slot) else ()


def check_required_fields(fields: SlotFields, data: DataSource) -> None:
    """Raise InvalidData if a data source lacks fields that the terms require."""
    from party_sdk.tables import Table

    if fields.preparation is not None and not isinstance(data, Table):
        raise InvalidData(
            "The terms prepare fields by their names: use a file or a data frame, not a "
            "matrix."
        )
    if fields.dictionary is not None:
        check_field_order(data, fields.dictionary.names)


def admitted_table_of(terms: Terms, slot: str, data: DataSource) -> AdmittedTable:
    """Return a party's table in the form in which the session uses it.

    Raises InvalidData, with the lines of repeated ids, if the table cannot take part.
    """
    from party_sdk.tables import Table

    params = check_terms(terms)
    try:
        return admit_table(terms, params, slot, data)
    except InvalidData:
        if match_key_columns_of(terms, slot):
            raise
        form = partial(params.normalise_id, shared=shares_rows(terms, slot))
        duplicates = data.describe_same_ids(form) if isinstance(data, Table) else ""
        if not duplicates:
            raise
        raise InvalidData(duplicates) from None


def select_clustered(
    terms: Terms, slot: str, memory: Memory, data: DataSource, labels: IntArray
) -> tuple[DataSource, IntArray]:
    """Return the prepared, clustered columns of a table, with the labels of its rows.

    A row that lacks a required value is dropped, together with its label.
    """
    plan = terms.plan(slot)
    data = select_clustered_columns(data, terms.dictionary_of(slot), plan)
    if plan is None:
        return data, labels
    rows = find_usable_rows(data, plan)
    if rows is not None:
        data, labels = keep_rows(data, rows), labels[rows]
    return prepare_rows(plan, data, memory), labels


def column_units_of(
    terms: Terms, slot: str, memory: Memory, data: DataSource
) -> FloatArray:
    """Return the divisor (m,) by which each clustered column of a slot is scaled.

    The divisors come from bounds in the terms, from the pooled moments of all parties
    or, if the session has neither, from the party's own rows.

    data: the clustered columns of the slot's rows.
    """
    scaling = getattr(check_terms(terms), "scaling", "standard")
    if scaling in UNSCALED:
        return np.ones(len(data.columns))
    if scaling == "minmax":
        declared = terms.bounds(slot)
        if declared is not None and np.isfinite(declared).all():
            return declared.high - declared.low
        ranges = memory.get(PooledRanges) or measure_moments(data)
        return ranges.maximum - ranges.minimum
    pooled = memory.get(PooledMoments) or measure_moments(data)
    plan = terms.plan(slot)
    return pooled.spread if plan is None else plan.units(pooled.spread)


def match_key_values_of(terms: Terms, slot: str, data: DataSource) -> list[KeyValues]:
    """Return the values of a slot's match keys; empty if rows are linked by ids."""
    params = check_terms(terms)
    if (
        not isinstance(params, AlignedParams)
        or not params.linking_keys
        or not shares_rows(terms, slot)
        or data.ids is None
    ):
        return []
    alignment = params.alignment
    return compute_key_values(data.ids, alignment.match_keys, alignment.normalisation)


def match_key_warnings(keys: Sequence[KeyValues]) -> list[str]:
    """Return warnings about match keys that are missing or useless in many rows."""
    sentences = [
        f"{key.n_filled} of {len(key.values)} rows have a value of the match key "
        f"{key.key!r}"
        for key in keys
        if key.n_filled < _LEAST_COMPLETE * len(key.values)
    ]
    if n_stand_ins := max((key.n_stand_ins for key in keys), default=0):
        sentences.append(
            f"{n_stand_ins} rows have a cell that means a missing value, such as 'unknown' "
            "or 1900-01-01 in many rows: match keys with it do not link them"
        )
    rows = zip(*(key.values for key in keys), strict=True)
    n_bare = sum(not any(row) for row in rows)
    if n_bare:
        sentences.append(
            f"{n_bare} rows are linked to nobody: for each match key they have no value, "
            "or the same as another row"
        )
    return sentences


def row_warnings(terms: Terms, slot: str, data: DataSource) -> list[str]:
    """Return warnings about a table's rows and ids before it joins a session.

    The warnings concern cells that look like codes for missing values, unusual or
    missing ids, and match keys that are mostly empty.
    """
    report, params = getattr(data, "report", None), check_terms(terms)
    sentences = (
        [] if report is None else [column.codes_sentence for column in report.columns]
    )
    if isinstance(params, AlignedParams) and params.linking_keys:
        sentences += match_key_warnings(match_key_values_of(terms, slot, data))
    elif isinstance(params, AlignedParams) and shares_rows(terms, slot):
        sentences.append(missing_ids_note(data.ids))
        expected = params.alignment.id_patterns
        if expected and data.ids is not None:
            fit = id_patterns.fit_patterns(
                expected, data.ids, params.alignment.normalisation
            )
            sentences.append(fit.describe_misfits(expected))
    return list(filter(None, sentences))
