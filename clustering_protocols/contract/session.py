"""The context of a session once all parties have joined."""

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
from clustering_protocols.numerics.data_source import DataSource, check_unique
from clustering_protocols.numerics.randomness import (
    KeyedStream,
    generator,
    public_stream,
)
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.agreements import Agreement, Member
from clustering_protocols.terms.preparation import ColumnPlan, Ranges
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Layout, Terms


class Params(BaseModel):
    """Base of a protocol's parameters: limits and descriptions become the API schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @property
    def selects_rows(self) -> bool:
        """Return whether rows are selected, so that a row group's tables may differ."""
        return False

    @property
    def describes(self) -> bool:
        """Return whether rows are only described, by sums over all of them."""
        return False

    @property
    def counts_linked(self) -> bool:
        """Return whether rows are linked only to count them."""
        return False

    @property
    def linked_by(self) -> Sequence[str]:
        """Return the match keys by which rows are linked; empty if ids name rows."""
        return ()

    @property
    def match_columns(self) -> Sequence[str]:
        """Return the columns of the match keys, which together make up a row's id."""
        return ()

    @property
    def epsilon_per_person(self) -> float:
        """Return the ε of differential privacy of each person; infinite without noise."""
        return math.inf

    @property
    def fewest_published(self) -> int:
        """Return how many rows a cluster needs to be published."""
        return 10

    def normalise_id(self, name: str, *, shared: bool) -> str:
        """Return an id in its normal form; ``shared``: whether others hold these rows."""
        return name

    def check_prepared(self, plans: Sequence[ColumnPlan]) -> None:
        """Refuse prepared columns unless these parameters can use them.

        A protocol that takes them divides each column by :meth:`ColumnPlan.units`.

        Raises InvalidParameters.
        """
        raise InvalidParameters(
            "this protocol clusters the columns of tables as they are.",
            field="preparation",
        )

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """Refuse dictionaries that lack what the parameters need.

        dictionary: the schema of each column group. Raises InvalidParameters.
        """

    def resolve_sizes(self, n_rows: int, n_columns: int) -> Self:
        """Return the parameters with everything that depends on the size computed.

        n_rows, n_columns: totals over all parties, as they joined.
        """
        return self

    def check_retired(self) -> None:
        """Refuse values that only simulations and sessions opened earlier may have.

        Raises InvalidParameters, which names the alternative.
        """

    def select_rows(self, data: DataSource, *, shared: bool) -> IntArray | None:
        """Return which of a party's rows take part, in their order, before the party joins.

        shared: whether other parties hold the same rows.

        Returns int64 (k,) or None: numbers of rows; None for all of them, as they are.

        Raises InvalidData if two rows have one id.
        """
        check_unique(data.ids)
        return None


P_co = TypeVar("P_co", bound=Params, covariant=True, default=Params)
"""The parameters of a protocol; code for every protocol leaves the type open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext(Generic[P_co]):
    """The context of both roles after all parties have joined.

    agreement, agreement_digest, terms, params: the agreed ones; in a stage of one of
        several runs, the parameters are those of that run.
    runs: the parameters of each run; they differ in ``n_clusters`` alone.
    selected: the number of rows that take part, of slots with selected rows.
    engine: runs kernels over blocks of rows on this role's machine.
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
        """Return the lattice of slots."""
        return self.terms.layout

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the names of all slots in order."""
        return self.terms.layout.names

    def member(self, slot: str) -> Member:
        """Return the roster's line of a slot."""
        return self.agreement.member(slot)

    def generator(self, *labels: str | int) -> np.random.Generator:
        """Return the analyst's generator for one use, the same on every machine."""
        return generator(self.terms.seed, self.terms.session, *labels)

    def public_stream(self, *labels: str | int) -> KeyedStream:
        """Return the stream for one use that analyst and parties draw alike."""
        return public_stream(self.terms.seed, self.terms.session, *labels)

    def n_rows(self, slot: str) -> int:
        """Return how many rows of a slot take part."""
        selected = self.selected.get(slot)
        return self.member(slot).n_rows if selected is None else selected

    @property
    def row_counts(self) -> list[int]:
        """Return the number of rows of each row group that take part."""
        return [self.n_rows(group[0]) for group in self.layout.row_groups]

    @property
    def column_widths(self) -> list[int]:
        """Return the number of columns of each column group."""
        return [self.member(group[0]).n_columns for group in self.layout.column_groups]

    def units(self, slot: str, spread: FloatArray) -> FloatArray:
        """Return the divisor of each column (m,) of a slot, given its spread.

        It is the spread, or 1 for a spread of 0, changed by the terms' preparation.
        """
        plan = self.terms.plan(slot)
        units = spread if plan is None else plan.units(spread)
        return np.where(units > 0, units, 1.0)

    def bounds(self, slot: str) -> Ranges:
        """Return the ranges of a slot's columns (m,); infinite without a dictionary."""
        ranges = self.terms.bounds(slot)
        return ranges or Ranges.unknown(self.member(slot).n_columns)

    def weights(self, slot: str, n_columns: int) -> FloatArray:
        """Return the factor of each column (m,) of a slot once it is scaled."""
        plan = self.terms.plan(slot)
        return np.ones(n_columns) if plan is None else plan.weights

    def of_run(self, run: int | None) -> SessionContext[P_co]:
        """Return the context of a run; None is outside of all runs."""
        return self if run is None else replace(self, params=self.runs[run])

    def with_engine(self, engine: Engine) -> SessionContext[P_co]:
        """Return the context with another engine."""
        return replace(self, engine=engine)

    def with_rows(self, selected: Mapping[str, int]) -> SessionContext[P_co]:
        """Return the context with new numbers of participating rows."""
        return replace(self, selected={**self.selected, **selected})
