"""Check, before a party uploads rows, whether one field dominates their distances.

An analyst that sees rows up to a rotation can see the directions in which they vary
most. Weights, declared ranges and categories with many levels can nearly align one
field with such a direction; the analyst can then read the values of that field, up to
sign and shift. So a party computes the share of each field in the variance of the
scaled rows. If a share exceeds 4 / (F + 3), which is that of a field of weight two
among F fields that are otherwise equal, the party asks its operator.
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
"""The variance of a uniform field in [0, 1], as other parties' fields are assumed to be."""

_MOST_COLUMNS: Final = 1_000
"""With more columns than this, no direction reveals a single one of them."""

_ROUNDING: Final = 1e-9
"""Relative to the largest standard deviation; a smaller one counts as zero."""


class DominanceQuestion(NamedTuple):
    """Notes for the operator, and a question; ``asks`` is empty if there is none."""

    notes: Mapping[str, Any]
    asks: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedColumns:
    """The variances of a party's scaled columns, and those assumed for other parties.

    fields: the name of the field to which each column (m,) belongs.
    covariance: float64 (m, m); the covariance of the party's own scaled rows.
    foreign_variances: float64 (p,); assumed variances of other column groups' fields.
    """

    fields: Sequence[str]
    covariance: FloatArray
    foreign_variances: FloatArray

    @property
    def n_fields(self) -> int:
        """Return the number of fields in all column groups together."""
        return len(set(self.fields)) + len(self.foreign_variances)

    @property
    def share_limit(self) -> float:
        """Return the largest share of the variance that is accepted, 4 / (F + 3)."""
        return 4.0 / (self.n_fields + 3)

    @property
    def largest_share(self) -> tuple[str, float]:
        """Return the name of the field with the largest variance, and its share."""
        variances: dict[str, float] = {}
        for name, variance in zip(self.fields, np.diag(self.covariance), strict=True):
            variances[name] = variances.get(name, 0.0) + float(variance)
        total = sum(variances.values()) + float(self.foreign_variances.sum())
        name = max(variances, key=lambda field: variances[field])
        return name, variances[name] / total if total > 0 else 0.0

    @property
    def most_readable_field(self) -> tuple[str, float]:
        """Return the field that correlates best with an axis, and the correlation."""
        values, directions = np.linalg.eigh(self.covariance)
        spread = np.sqrt(np.diag(self.covariance))
        varies = spread > _ROUNDING * spread.max(initial=0.0)
        strength = np.sqrt(np.maximum(values, 0.0))
        r = np.abs(directions * strength)[varies] / spread[varies, None]
        if not r.size:
            return self.fields[0], 0.0
        best = int(np.argmax(r.max(axis=1)))
        column = int(np.flatnonzero(varies)[best])
        return self.fields[column], min(float(r[best].max()), 1.0)


def check_dominance(
    context: PartyContext, columns: Sequence[str], scaled: Rows
) -> DominanceQuestion:
    """Return notes and, if a field dominates the distances, a question to the operator.

    scaled: a function that returns an iterable of batches (n, m) of scaled rows; it is
        called twice.
    """
    compared = build_compared_columns(context, columns, scaled)
    notes: dict[str, Any] = {}
    if len(compared.fields) <= _MOST_COLUMNS:
        best, r = compared.most_readable_field
        notes["field that the analyst alone can read best"] = (
            f"{best!r}, to |r| {r:.2f}, up to sign and shift"
        )
    name, share = compared.largest_share
    # With a single field, dominance is expected, unless other fields are only described.
    is_alone = compared.n_fields == 1 and context.session.terms.described_names(
        context.slot.name
    )
    if context.choices.get(ONE_FIELD) or not (is_alone or share > compared.share_limit):
        return DominanceQuestion(notes, "")
    limit = f"the limit is {compared.share_limit:.0%}"
    asks = (
        f"Field {name!r} makes up {share:.0%} of the distances, "
        f"{'all others are only described' if is_alone else limit}: the analyst reads its "
        "values nearly as they are. Nothing of this was sent. To send it, run again with "
        f"--choice {ONE_FIELD}=true."
    )
    return DominanceQuestion(notes, asks)


def build_compared_columns(
    context: PartyContext, columns: Sequence[str], scaled: Rows
) -> ComparedColumns:
    """Return the variances to compare; the arguments are those of check_dominance."""
    session = context.session
    plan = session.terms.plan(context.slot.name)
    minmax = getattr(session.params, "scaling", "") == "minmax"
    foreign_variances = [np.empty(0)]
    for column, (slot, *_) in enumerate(session.layout.column_groups):
        if column != context.slot.column:
            weights = session.weights(slot, session.member(slot).n_columns)
            variances = np.square(weights) * (_UNIFORM if minmax else 1.0)
            foreign_variances.append(variances)
    return ComparedColumns(
        fields=columns if plan is None else plan.sources,
        covariance=_compute_covariance(scaled, len(columns)),
        foreign_variances=np.concatenate(foreign_variances),
    )


def _compute_covariance(scaled: Rows, width: int) -> FloatArray:
    n_rows, total = 0, np.zeros(width)
    for batch in scaled():
        n_rows, total = n_rows + len(batch), total + batch.sum(axis=0)
    products = np.zeros((width, width))
    for batch in scaled():
        deviations = batch - total / n_rows
        products += deviations.T @ deviations
    return products / max(n_rows, 1)
