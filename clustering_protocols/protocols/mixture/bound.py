"""A bound on the number of updates, so that totals cannot be solved for rows of others.

A party knows the components of every update, so each total is an equation in the rows
of the others. Only half as many equations as unknown numbers are allowed. Equations and
unknown numbers are counted in bits, and a total has as many bits as a real number (see
the README).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import DegreeSums
from clustering_protocols.contract.row_history import SHARE
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.secrecy.fixed_point import RING_BITS
from clustering_protocols.terms.session_risks import SUMS_LIMIT

from .model import Columns, Shape
from .params import Mixture, MixtureContext, MixtureSession

MARGIN: Final = 2
"""The least number of unknown numbers per equation."""
_CLOSING: Final = 1  # the closing sums count as one update
_NEARLY_ALL: Final = 0.95
"""Columns with a larger share of distinct values are treated as real numbers."""


def session_columns(session: MixtureSession) -> Columns:
    """Return which columns of a session are numbers and which are categories."""
    slot = session.slots[0]
    plan, width = session.terms.plan(slot), session.member(slot).n_columns
    return Columns(width, () if plan is None else plan.levels)


def count_rows_of_others(session: MixtureSession) -> int:
    """Return the number of rows outside the party that has the most rows."""
    rows = sorted(session.n_rows(slot) for slot in session.slots)
    return sum(rows[:-1])


def count_unknowns(bits: Sequence[float], n_rows: int) -> float:
    """Return the information in n_rows rows, in unknown numbers of ``RING_BITS`` bits.

    bits: the bits of information in a row's value of each column or category.
    """
    per_row = sum(bits)
    if max(bits, default=0.0) >= RING_BITS:
        return n_rows * per_row / RING_BITS
    # if few different rows are possible, their frequencies determine all rows
    counts = 2.0 ** min(per_row, 60.0) * math.log2(n_rows + 1)
    return min(n_rows * per_row, counts) / RING_BITS


def count_equations(runs: Sequence[Mixture], columns: Columns) -> int:
    """Return the number of equations from one update of every run."""
    return sum(Shape.of(run, columns).n_equations for run in runs)


def updates_that_fit(
    runs: Sequence[Mixture], columns: Columns, n_rows: int, bits: Sequence[float] = ()
) -> int:
    """Return how many updates of every run are allowed if other parties have n_rows rows.

    bits: as for :func:`count_unknowns`; by default those that the dictionary implies.
    """
    unknowns = count_unknowns(bits or bits_from_dictionary(columns), n_rows)
    rounds = unknowns / (MARGIN * count_equations(runs, columns))
    return max(int(rounds) - _CLOSING, 0)


def remedy(columns: Columns, n_rows: int) -> str:
    """Say what would allow more updates if other parties have n_rows rows."""
    bits = sum(bits_from_dictionary(columns))
    counts = 2.0 ** min(bits, 60.0) * math.log2(n_rows + 1)
    if not len(columns.numbers) and counts < n_rows * bits:
        return "more fields or levels (more rows of the same levels add little)"
    return "more rows"


def bits_from_dictionary(columns: Columns) -> list[float]:
    """Return the bits of each number and each category that the dictionary implies."""
    numbers = [float(RING_BITS)] * len(columns.numbers)
    return numbers + [math.log2(count) for count in columns.level_counts]


def limit_updates(session: MixtureSession) -> int:
    """Return the maximum number of updates of a run, which is the same for all parties."""
    fit = updates_that_fit(
        session.runs, session_columns(session), count_rows_of_others(session)
    )
    return min(session.params.max_iter, fit)


def audit_sums(context: MixtureContext, data: DataSource) -> DegreeSums:
    """Return the equations per unknown number in this run's sums, including the next sum.

    Unknown numbers are estimated from this party's columns. Over all runs, at most
    twice ``sums_limit`` equations per unknown number are allowed, by default one half.
    A ``sums_limit`` of 1 allows any number.

    Raises GuardRefused if there would be more equations.
    """
    session, columns = context.session, session_columns(context.session)
    n_rows, bits = count_rows_of_others(session), bits_from_dictionary(columns)
    n_numbers = len(columns.numbers)
    bits_per_update = MARGIN * RING_BITS * count_equations(session.runs, columns)
    if n_rows * n_numbers < bits_per_update * (limit_updates(session) + _CLOSING):
        distinct = [len(np.unique(x)) for x in matrix(data).T[columns.numbers]]
        bits[:n_numbers] = [
            math.log2(max(count, 1))
            if count < _NEARLY_ALL * data.n_rows
            else float(RING_BITS)
            for count in distinct
        ]
    unknowns = count_unknowns(bits, n_rows)
    before = context.memory.get(DegreeSums)
    own = 0.0 if before is None else before.equations
    runs = range(len(session.runs))
    audits = [context.memory.scope_to_run(run).get(DegreeSums) for run in runs]
    total = sum(sums.equations for sums in audits if sums is not None)
    update = Shape.of(session.params, columns).n_equations / max(unknowns, 1e-9)
    limit = context.choices.get(SUMS_LIMIT, SHARE)
    if not isinstance(limit, int | float) or not 0 <= limit <= 1:
        raise GuardRefused(f"{SUMS_LIMIT!r} must be a share, from 0 to 1.")
    if limit < 1 and MARGIN * (total + update) > limit / SHARE + 1e-9:
        fit = updates_that_fit(session.runs, columns, n_rows, bits)
        raise GuardRefused(
            "Columns repeat their values: totals of more rounds would show which rows the "
            f"parties have. max_iter {fit} would fit."
            if fit
            else "Columns repeat their values: totals would show which rows the parties "
            f"have. It takes {remedy(columns, n_rows)}, or fewer clusters."
        )
    return DegreeSums(equations=own + update)
