"""How many updates a session makes, so that totals cannot be solved for rows of others.

A party knows the components of every update, so each total is an equation in the rows of
the others: k·(F(F + 3)/2 + 1) of each update with full covariances, of all runs. Half as
many equations as unknown numbers are allowed, counted in bits: a total has as many as a
number. Of a category only the bits of its levels are unknown. Where there are categories
alone, rows are of few patterns, and what is unknown is how many rows of others each has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import DegreeSums
from clustering_protocols.contract.row_history import SHARE
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.secrecy.fixed_point import RING_BITS
from clustering_protocols.terms.session_risks import SUMS_LIMIT

from .columns import Columns
from .model import Shape
from .params import Mixture, MixtureContext, MixtureSession

MARGIN: Final = 2
"""How many unknown numbers there must be for each equation."""
_CLOSING: Final = 1
_NEARLY_ALL: Final = 0.95
"""Of more different values, a column counts as real numbers."""


def columns_of(session: MixtureSession) -> Columns:
    """Return which columns of the session are numbers."""
    slot = session.slots[0]
    return Columns.of(session.terms.plan(slot), session.member(slot).n_columns)


def others(session: MixtureSession) -> int:
    """Return the rows that the party with most rows lacks."""
    rows = sorted(session.n_rows(slot) for slot in session.slots)
    return sum(rows[:-1])


def unknown_numbers(bits: Sequence[float], n_rows: int) -> float:
    """Return how many numbers are unknown of so many rows.

    bits: of each column or category.
    """
    per_row = sum(bits)
    if max(bits, default=0.0) >= RING_BITS:
        return n_rows * per_row / RING_BITS
    # rows of few patterns: how many there are of each says all of them
    counts = 2.0 ** min(per_row, 60.0) * math.log2(n_rows + 1)
    return min(n_rows * per_row, counts) / RING_BITS


def equations(runs: Sequence[Mixture], columns: Columns) -> int:
    """Return the equations of one update of every run."""
    return sum(Shape.of(run, columns).n_equations for run in runs)


def updates_that_fit(
    runs: Sequence[Mixture], columns: Columns, n_rows: int, bits: Sequence[float] = ()
) -> int:
    """Return how many updates of every run fit so many rows of others.

    bits: of each column or category; by default those of the columns' kinds.
    """
    known = bits or kinds_of_bits(columns)
    rounds = unknown_numbers(known, n_rows) / (MARGIN * equations(runs, columns))
    return max(int(rounds) - _CLOSING, 0)


def kinds_of_bits(columns: Columns) -> list[float]:
    """Return the bits of a row in each number and category, by the dictionary."""
    numbers = [float(RING_BITS)] * len(columns.numbers)
    return numbers + [math.log2(count) for count in columns.level_counts]


def n_updates(session: MixtureSession) -> int:
    """Return how many updates a run makes at most; every party finds the same."""
    fit = updates_that_fit(session.runs, columns_of(session), others(session))
    return min(session.params.max_iter, fit)


def check(session: MixtureSession) -> None:
    """Refuse so few rows that not one update fits; nobody has worked yet.

    Raises ProtocolFailed.
    """
    if n_updates(session) < 1:
        raise ProtocolFailed(
            f"A party lacks {others(session)} rows of others: it could solve the totals of "
            "one update for them. It takes more rows, fewer clusters, or a "
            "covariance_type of fewer numbers."
        )


def audit(context: MixtureContext, data: DataSource) -> DegreeSums:
    """Return what the sums answered so far tell, with one more, of all runs.

    By own rows: what the terms say counts for nothing here but the numbers that leave.
    The party's own ``sums_limit``, a quarter, is half as many equations as unknown
    numbers; 1 sets no limit.

    Raises GuardRefused if they are too many equations.
    """
    session, columns = context.session, columns_of(context.session)
    bits = kinds_of_bits(columns)
    at = columns.numbers
    needed = MARGIN * RING_BITS * equations(session.runs, columns)
    if others(session) * len(at) < needed * (n_updates(session) + _CLOSING):
        distinct = [len(np.unique(column)) for column in matrix(data).T[at]]
        few = [count < _NEARLY_ALL * data.n_rows for count in distinct]
        repeated = zip(few, distinct, strict=True)
        bits[: len(at)] = [
            math.log2(max(count, 1)) if small else float(RING_BITS)
            for small, count in repeated
        ]
    unknown = unknown_numbers(bits, others(session))
    before = context.memory.get(DegreeSums)
    own = 0.0 if before is None else before.equations
    runs = range(len(session.runs))
    kept = [context.memory.scope_to_run(run).get(DegreeSums) for run in runs]
    told = sum(each.equations for each in kept if each is not None)
    each = Shape.of(session.params, columns).n_equations / max(unknown, 1e-9)
    limit = context.choices.get(SUMS_LIMIT, SHARE)
    if not isinstance(limit, int | float) or not 0 <= limit <= 1:
        raise GuardRefused(f"{SUMS_LIMIT!r} must be a share, from 0 to 1.")
    if limit < 1 and MARGIN * (told + each) > limit / SHARE + 1e-9:
        fit = updates_that_fit(session.runs, columns, others(session), bits)
        raise GuardRefused(
            "Columns repeat their values: totals of more rounds would show which rows the "
            f"parties have. max_iter {fit} would fit."
            if fit
            else "Columns repeat their values: totals would show which rows the parties "
            "have. It takes more rows, or fewer clusters."
        )
    return DegreeSums(equations=own + each)
