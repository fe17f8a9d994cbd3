"""The base class of parameters, and the context of a session with all its parties."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Self

import numpy as np
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.data_source import DataSource, check_unique_ids
from clustering_protocols.numerics.randomness import (
    KeyedStream,
    public_stream,
    seeded_generator,
)
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.agreements import Agreement, Member
from clustering_protocols.terms.preparation import ColumnPlan, Ranges
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Layout, Terms


class Params(BaseModel):
    """Base class of protocol parameters, whose fields become the schema in the API."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @property
    def selects_rows(self) -> bool:
        """Return whether a row group's tables may differ, because rows are selected."""
        return False

    @property
    def describes(self) -> bool:
        """Return whether the session only describes all rows, without clusters."""
        return False

    @property
    def counts_linked(self) -> bool:
        """Return whether rows are linked only in order to count them."""
        return False

    @property
    def linking_keys(self) -> Sequence[str]:
        """Return the match keys by which rows are linked; empty if linked by id."""
        return ()

    @property
    def match_key_columns(self) -> Sequence[str]:
        """Return the columns of the match keys, which together make up a row's id."""
        return ()

    @property
    def epsilon_per_person(self) -> float:
        """Return the ε of differential privacy per person; infinite without noise."""
        return math.inf

    @property
    def min_published_rows(self) -> int:
        """Return the minimum number of rows of a cluster that is published."""
        return 10

    def normalise_id(self, name: str, *, shared: bool) -> str:
        """Return an id in normal form; ``shared``: whether others hold these rows."""
        return name

    def check_prepared_columns(self, plans: Sequence[ColumnPlan]) -> None:
        """Raise :class:`InvalidParameters` if these prepared columns are not supported.

        A protocol that supports them divides each column by :meth:`ColumnPlan.units`.
        """
        raise InvalidParameters(
            "this protocol clusters the columns of tables as they are.",
            field="preparation",
        )

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """Raise :class:`InvalidParameters` if a dictionary lacks necessary entries.

        dictionary: the schema of each column group.
        """

    def resolve_sizes(self, n_rows: int, n_columns: int) -> Self:
        """Return the parameters with values that depend on the data's size filled in.

        n_rows, n_columns: totals over all parties, as they joined.
        """
        return self

    def select_rows(self, data: DataSource, *, shared: bool) -> IntArray | None:
        """Return which rows of a party take part, before the party joins.

        shared: whether other parties hold the same rows.

        Returns int64 (k,) or None: the numbers of these rows, in order; None for all
            rows.

        Raises InvalidData if two rows have the same id.
        """
        check_unique_ids(data.ids)
        return None


P_co = TypeVar("P_co", bound=Params, covariant=True, default=Params)
"""The type of a protocol's parameters, which generic code leaves open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext(Generic[P_co]):
    """The context that both roles receive after all parties have joined.

    agreement, agreement_digest, terms, params: the agreement of all parties, its
        digest, the terms in it, and the parameters in the terms. In a stage that
        belongs to one of several runs, the parameters are those of that run.
    runs: the parameters of each run, which differ only in ``n_clusters``.
    selected: the number of participating rows of each slot that selected rows.
    engine: the engine that runs kernels over blocks of rows on this role's machine.
    """

    agreement: Agreement = field(repr=False)
    agreement_digest: str
    terms: Terms = field(repr=False)
    params: P_co
    runs: tuple[P_co, ...]
    selected: Mapping[str, int] = field(default_factory=dict)
    engine: Engine = field(default=ONE_THREAD, repr=False)

    @property
    def layout(self) -> Layout:
        """Return the layout of the session's slots."""
        return self.terms.layout

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the names of all slots in order."""
        return self.terms.layout.names

    def member(self, slot: str) -> Member:
        """Return the roster entry of a slot."""
        return self.agreement.member(slot)

    def generator(self, *labels: str | int) -> np.random.Generator:
        """Return the analyst's generator for one purpose, the same on every machine."""
        return seeded_generator(self.terms.seed, self.terms.session, *labels)

    def public_stream(self, *labels: str | int) -> KeyedStream:
        """Return a stream for one purpose from which all roles draw equal numbers."""
        return public_stream(self.terms.seed, self.terms.session, *labels)

    def n_rows(self, slot: str) -> int:
        """Return how many rows of a slot take part."""
        selected = self.selected.get(slot)
        return self.member(slot).n_rows if selected is None else selected

    @property
    def row_counts(self) -> list[int]:
        """Return the number of participating rows of each row group."""
        return [self.n_rows(group[0]) for group in self.layout.row_groups]

    @property
    def column_widths(self) -> list[int]:
        """Return the number of columns of each column group."""
        return [self.member(group[0]).n_columns for group in self.layout.column_groups]

    def units(self, slot: str, spread: FloatArray) -> FloatArray:
        """Return the divisor of each column (m,) of a slot, given its spread.

        The divisor is the spread (standard deviation), or 1 where the spread is 0,
        adjusted as the terms' preparation requires.
        """
        plan = self.terms.plan(slot)
        units = spread if plan is None else plan.units(spread)
        return np.where(units > 0, units, 1.0)

    def bounds(self, slot: str) -> Ranges:
        """Return the ranges of a slot's columns (m,); infinite without a dictionary."""
        ranges = self.terms.bounds(slot)
        return ranges or Ranges.unbounded(self.member(slot).n_columns)

    def weights(self, slot: str, n_columns: int) -> FloatArray:
        """Return the weight (m,) by which scaling multiplies each column of a slot."""
        plan = self.terms.plan(slot)
        return np.ones(n_columns) if plan is None else plan.weights

    def for_run(self, run: int | None) -> SessionContext[P_co]:
        """Return the context within a run; None means outside all runs."""
        return self if run is None else replace(self, params=self.runs[run])

    def with_rows(self, selected: Mapping[str, int]) -> SessionContext[P_co]:
        """Return a copy of the context with new numbers of participating rows."""
        return replace(self, selected={**self.selected, **selected})
