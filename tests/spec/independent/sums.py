"""Section 10: a sum that a group adds up and its members read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal, Words, read_total, share, sum_label
from .order import View


@dataclass(frozen=True)
class Sum:
    """Section 10: a sum of the members of a group, under its secret.

    least: of members.
    """

    view: View
    scope: str
    name: str
    blind: bool = True
    least: int = 3

    def hide(self, words: Words) -> Words:
        """Section 10, 2 to 6: this party's share, in the attempt in hand."""
        view, session = self.view, self.view.session
        members = view.group(self.scope)
        return share(
            words,
            sum_label(view.transcript, self.name, members),
            view.transcript,
            session.slot,
            (
                session.keys()[0],
                {slot: session.roster[slot]["keys"]["x25519"] for slot in members},
            ),
            self._group,
            blind=self.blind,
            least=self.least,
        )

    def read(
        self, total: Words, transcript: str, largest: NDArray[np.float64] | float
    ) -> NDArray[np.int64]:
        """Section 10, 7 and 8: the words of a total, signed.

        transcript: of the attempt in which the shares were made.
        largest: what no word exceeds, in units.
        """
        if isinstance(largest, np.ndarray) and total.size != largest.size + 1:
            raise Refusal("invalid-array")
        label = sum_label(transcript, self.name, self.view.group(self.scope))
        words = read_total(total, label, self._group, largest, blind=self.blind)
        return words.view(np.int64)

    @property
    def _group(self) -> tuple[bytes, str]:
        """Section 9: the group's secret, and the agreement's digest."""
        secret = bytes.fromhex(self.view.recall(f"secret/{self.scope}"))
        return secret, self.view.session.agreement
