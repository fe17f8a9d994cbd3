"""A clustering beside the best of ten pooled starts: its objective and its labels."""

from __future__ import annotations

from typing import Final, NamedTuple

_ZERO: Final = 1e-12


class Objectives(NamedTuple):
    """Values of one objective, less is better, on the pooled rows.

    own: of the session's result.
    pooled: of the best of ten starts of the pooled method, as one would run it.
    agreement: adjusted Rand index between the session's labels and those of that run.
        Objectives may be equal where labels are not: where several clusterings are
        nearly as good, or a small cluster was missed. None where clusters of that run
        coincide, whose labels tell nothing.
    same_rules: of the best of ten starts of the pooled method that obeys the rules of the
        session (clusters of few rows that stay, dimensions that are left out); None where
        there are no such rules, or none applied.
    """

    own: float
    pooled: float
    agreement: float | None
    same_rules: float | None = None

    @property
    def ratio(self) -> float | None:
        """Return the session's over the pooled one; None where that is nothing."""
        return _divide(self.own, self.pooled)

    @property
    def ratio_same_rules(self) -> float | None:
        """Return the session's over the pooled one under the same rules, if any apply."""
        pooled = self.same_rules
        return self.ratio if pooled is None else _divide(self.own, pooled)


def _divide(own: float, pooled: float) -> float | None:
    if pooled > _ZERO:
        return own / pooled
    return 1.0 if own <= _ZERO else None
