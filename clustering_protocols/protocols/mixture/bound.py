"""A bound on the number of updates, so that totals cannot be solved for rows of others.

A party knows the components of every update, so each total is an equation in the rows
of the others, which :mod:`clustering_protocols.contract.row_history` bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from clustering_protocols.contract import DegreeSums, row_history
from clustering_protocols.contract.row_history import (
    audit_degrees,
    count_bits,
    count_unknowns,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.secrecy.fixed_point import RING_BITS

from .model import Columns, Shape
from .params import Mixture, MixtureContext, MixtureSession

_CLOSING: Final = 1  # the closing sums count as one update


def session_columns(session: MixtureSession) -> Columns:
    """Return which columns of a session are numbers and which are categories."""
    slot = session.slots[0]
    plan, width = session.terms.plan(slot), session.member(slot).n_columns
    return Columns(width, () if plan is None else plan.levels)


def count_rows_of_others(session: MixtureSession) -> int:
    """Return the number of rows outside the party that has the most rows."""
    rows = sorted(session.n_rows(slot) for slot in session.slots)
    return sum(rows[:-1])


def count_equations(runs: Sequence[Mixture], columns: Columns) -> int:
    """Return the number of equations from one update of every run."""
    return sum(Shape.of(run, columns).n_equations for run in runs)


def updates_that_fit(runs: Sequence[Mixture], columns: Columns, unknowns: float) -> int:
    """Return how many updates of every run are allowed for so many unknown numbers."""
    rounds = unknowns / (row_history.MARGIN * count_equations(runs, columns))
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
    columns = session_columns(session)
    bits, n_rows = bits_from_dictionary(columns), count_rows_of_others(session)
    fit = updates_that_fit(session.runs, columns, count_unknowns(bits, n_rows))
    return min(session.params.max_iter, fit)


def audit_sums(context: MixtureContext, data: DataSource) -> DegreeSums:
    """Return this run's sums of degrees, with the next sum added.

    Unknown numbers are estimated from this party's columns.

    Raises GuardRefused if the totals of all runs would reveal rows.
    """
    session, columns = context.session, session_columns(context.session)
    n_rows = count_rows_of_others(session)

    def unknowns() -> float:
        bits = bits_from_dictionary(columns)
        bits[: len(columns.numbers)] = count_bits(data)[columns.numbers]
        return count_unknowns(bits, n_rows)

    def advise(unknowns: float) -> str:
        if fit := updates_that_fit(session.runs, columns, unknowns):
            return f"max_iter {fit} would fit."
        return f"It takes {remedy(columns, n_rows)}, or fewer clusters."

    equations = Shape.of(session.params, columns).n_equations
    return audit_degrees(context, equations, unknowns, advise)
