"""Whether one field makes up nearly the whole distance, before a party uploads rows.

An analyst that sees rows up to a rotation sees the first directions in which they vary.
Weights, declared ranges and categories of many levels can make one field nearly such a
direction: it then reads that field's values, up to sign and shift. So a party compares
each field's share of the variance, in the units in which rows are compared, with that of
a weight of two on one of as many equal fields, 4 / (F + 3); above, its people are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from clustering_protocols.contract import PartyContext
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.session_risks import ONE_FIELD

Rows = Callable[[], Iterable[FloatArray]]

_UNIFORM: Final = 1.0 / 12.0
"""The variance of a uniform field in [0, 1], which is taken of fields of others."""

_MOST_COLUMNS: Final = 1_000
"""Of more columns directions are not looked at: no single one is read of so many."""


_ROUNDING: Final = 1e-9
"""Of the largest spread: a column that varies by less is constant, but for last digits."""


class DominanceQuestion(NamedTuple):
    """What a party's people read, and what they are asked, if anything."""

    notes: Mapping[str, Any]
    asks: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedColumns:
    """Own columns as rows are compared, gathered by field.

    fields: the field of each column (m,).
    covariance: float64 (m, m); of own rows, as they are compared.
    others: float64 (p,); the variances that fields of other column groups are taken to
        have.
    """

    fields: Sequence[str]
    covariance: FloatArray
    others: FloatArray

    @property
    def n_fields(self) -> int:
        """Return how many fields rows are compared by, those of others included."""
        return len(set(self.fields)) + len(self.others)

    @property
    def limit(self) -> float:
        """Return the share of a weight of two on one of F equal fields."""
        return 4.0 / (self.n_fields + 3)

    @property
    def largest(self) -> tuple[str, float]:
        """Return the field of most variance, and its share of all."""
        variances: dict[str, float] = {}
        for name, variance in zip(self.fields, np.diag(self.covariance), strict=True):
            variances[name] = variances.get(name, 0.0) + float(variance)
        total = sum(variances.values()) + float(self.others.sum())
        name = max(variances, key=lambda each: variances[each])
        return name, variances[name] / total if total > 0 else 0.0

    @property
    def best_read(self) -> tuple[str, float]:
        """Return the field that one direction shows best, and its largest |r| with any."""
        values, directions = np.linalg.eigh(self.covariance)
        spread = np.sqrt(np.diag(self.covariance))
        varies = spread > _ROUNDING * spread.max(initial=0.0)
        strength = np.sqrt(np.maximum(values, 0.0))
        r = np.abs(directions * strength)[varies] / spread[varies, None]
        if not r.size:
            return self.fields[0], 0.0
        place = int(np.argmax(r.max(axis=1)))
        name = [f for f, there in zip(self.fields, varies, strict=True) if there][place]
        return name, min(float(r[place].max()), 1.0)


def check(
    context: PartyContext, columns: Sequence[str], scaled: Rows
) -> DominanceQuestion:
    """Return what to note and to ask before rows are uploaded.

    scaled: yields rows (n, m), batch by batch, as they are compared; it is called
        twice.
    """
    found = build_compared_columns(context, columns, scaled)
    notes: dict[str, Any] = {}
    if len(found.fields) <= _MOST_COLUMNS:
        best, r = found.best_read
        notes["what the analyst alone reads best of one field"] = (
            f"{best!r}, to |r| {r:.2f}, up to sign and shift"
        )
    name, share = found.largest
    # who brings one variable knows it; who brings several may not see that one counts
    is_alone = found.n_fields == 1 and context.session.terms.described_names(
        context.slot.name
    )
    if context.choices.get(ONE_FIELD) or not (is_alone or share > found.limit):
        return DominanceQuestion(notes, "")
    said = f"the limit is {found.limit:.0%}"
    asks = (
        f"Field {name!r} makes up {share:.0%} of the distances, "
        f"{'all others are only described' if is_alone else said}: the analyst reads its "
        "values nearly as they are. Nothing of this was sent. Run again with --choice "
        f"{ONE_FIELD}=true if it may leave."
    )
    return DominanceQuestion(notes, asks)


def build_compared_columns(
    context: PartyContext, columns: Sequence[str], scaled: Rows
) -> ComparedColumns:
    """Return own columns as rows are compared; see :func:`check`."""
    session, own = context.session, context.slot.column
    plan = session.terms.plan(context.slot.name)
    fields = columns if plan is None else plan.sources
    others = [
        _variances_of(context, group[0])
        for column, group in enumerate(session.layout.column_groups)
        if column != own
    ]
    return ComparedColumns(
        fields=fields,
        covariance=_covariance(scaled, len(columns)),
        others=np.concatenate([*others, np.empty(0)]),
    )


def _variances_of(context: PartyContext, slot: str) -> FloatArray:
    """Return what the columns of a slot's column group are taken to vary by."""
    session = context.session
    weights = session.weights(slot, session.member(slot).n_columns)
    to_one = getattr(session.params, "scaling", "") == "minmax"
    return np.square(weights) * (_UNIFORM if to_one else 1.0)


def _covariance(scaled: Rows, width: int) -> FloatArray:
    """Return the covariance (m, m) of rows, in two passes."""
    n_rows, total = 0, np.zeros(width)
    for batch in scaled():
        n_rows, total = n_rows + len(batch), total + batch.sum(axis=0)
    found = np.zeros((width, width))
    for batch in scaled():
        apart = batch - total / n_rows
        found += apart.T @ apart
    return found / max(n_rows, 1)
