"""A comparison of a session's objective and labels with the best of ten pooled runs."""

from __future__ import annotations

from typing import Final, NamedTuple

_ZERO: Final = 1e-12


class Objectives(NamedTuple):
    """Values of an objective function on the pooled rows, where smaller is better.

    own: the value for the session's result.
    pooled: the best value of ten runs of the pooled method.
    agreement: the adjusted Rand index between the session's labels and those of the
        best pooled run. Labels may differ if several clusterings are nearly as good, or
        if a small cluster was missed. None if clusters of the pooled run coincide,
        because its labels are then arbitrary.
    same_rules: the best value of ten pooled runs under the session's rules (small
        clusters do not move, some dimensions are left out); None if no such rule
        applied.
    """

    own: float
    pooled: float
    agreement: float | None
    same_rules: float | None = None

    @property
    def ratio(self) -> float | None:
        """Return own / pooled; 1 if both are 0, or None if only ``pooled`` is 0."""
        return _compute_ratio(self.own, self.pooled)

    @property
    def ratio_same_rules(self) -> float | None:
        """Return own / same_rules if the latter is set, otherwise :attr:`ratio`."""
        pooled = self.same_rules
        return self.ratio if pooled is None else _compute_ratio(self.own, pooled)


def _compute_ratio(own: float, pooled: float) -> float | None:
    if pooled > _ZERO:
        return own / pooled
    return 1.0 if own <= _ZERO else None
