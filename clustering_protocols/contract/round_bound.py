"""Whether the totals of many rounds could be solved for the numbers behind them.

A party that reads totals of every round, and knows what they are of, has equations for
the numbers of others. Half as many equations as unknowns is what we ask for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundBound:
    """Equations of a session, and how many numbers of others a party lacks at least.

    per_round: equations of one round, of all runs together.
    further: rounds beside the updates.
    unknowns: numbers of others.
    """

    per_round: int
    further: int
    unknowns: int

    @property
    def most_rounds(self) -> int:
        """Return the largest number of updates that fits; 0 if none does."""
        return max(self.unknowns // (2 * self.per_round) - self.further, 0)

    def needed(self, rounds: int) -> int:
        """Return how many unknowns so many updates take."""
        return 2 * self.per_round * (rounds + self.further)

    def excess(self, rounds: int, reads: str, takes: str, single: RoundBound) -> str:
        """Return why so many updates do not fit, and what would; nothing if they fit.

        reads: what a party reads, as the beginning of a sentence.
        takes: what it takes instead, with the number of :meth:`needed`.
        single: of one start.
        """
        if self.needed(rounds) <= self.unknowns:
            return ""
        fits = "fewer clusters"
        if self.most_rounds:
            fits = f"max_iter of at most {self.most_rounds}"
        elif single.most_rounds:
            fits = f"n_init 1 with max_iter of at most {single.most_rounds}"
        return (
            f"{reads} in up to {rounds} rounds, and could solve them for the rows. It "
            f"takes {takes}, or {fits}. With small_cohorts 'allow' the risk is accepted."
        )
