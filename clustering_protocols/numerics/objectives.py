"""A session's objective and labels, compared with the best of ten pooled starts."""

from __future__ import annotations

from typing import Final, NamedTuple

_ZERO: Final = 1e-12


class Objectives(NamedTuple):
    """Values of one objective on the pooled rows; smaller is better.

    own: value of the session's result.
    pooled: value of the best of ten starts of the pooled method.
    agreement: adjusted Rand index between the session's labels and those of the best
        pooled run. Labels may differ if several clusterings are nearly as good, or a
        small cluster was missed. None if clusters of the pooled run coincide, because
        its labels are then arbitrary.
    same_rules: value of the best of ten pooled starts under the rules of the session
        (clusters of few rows that stay, dimensions that are left out); None if no rule
        applied.
    """

    own: float
    pooled: float
    agreement: float | None
    same_rules: float | None = None

    @property
    def ratio(self) -> float | None:
        """Return the session's value over the pooled one, None if that alone is 0."""
        return _divide(self.own, self.pooled)

    @property
    def ratio_same_rules(self) -> float | None:
        """Return the session's value over the pooled one, under the same rules if any."""
        pooled = self.same_rules
        return self.ratio if pooled is None else _divide(self.own, pooled)


def _divide(own: float, pooled: float) -> float | None:
    if pooled > _ZERO:
        return own / pooled
    return 1.0 if own <= _ZERO else None
