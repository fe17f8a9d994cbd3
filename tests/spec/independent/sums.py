"""Section 10: a sum that a group adds up and its members read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal, Words, mask, read_total, share, sum_label
from .order import View


@dataclass(frozen=True)
class Sum:
    """Section 10: a sum of the members of a group, under its secret.

    least: of members.
    some: its members, where they are not the whole group.
    """

    view: View
    scope: str
    name: str
    blind: bool = True
    least: int = 3
    some: Sequence[str] = ()

    @property
    def members(self) -> list[str]:
        """Section 10: its members in the order of slots."""
        return list(self.some) or self.view.group(self.scope)

    def hide(self, words: Words) -> Words:
        """Section 10, 2 to 6: this party's share, in the attempt in hand."""
        place = (self.label, self.view.transcript, self.view.session.slot, self._keys)
        more = {"blind": self.blind, "least": self.least}
        return share(words, *place, self._group, **more)

    def mask(self, words: Words) -> Words:
        """Section 10, 5: this party's share of a sum without a tag."""
        if len(self._keys[1]) < self.least:
            raise Refusal("guard-refused")
        slot = self.view.session.slot
        return mask(words, self.label, self.view.transcript, slot, self._keys)[0]

    @property
    def label(self) -> str:
        """Section 10, 1: the label of the sum in the attempt in hand."""
        return sum_label(self.view.transcript, self.name, self.members)

    @property
    def _keys(self) -> tuple[Any, dict[str, str]]:
        """Section 10, 5: the own key, and those of all members."""
        session, roster = self.view.session, self.view.session.roster
        keys = {slot: roster[slot]["keys"]["x25519"] for slot in self.members}
        return session.keys()[0], keys

    def read(
        self, total: Words, transcript: str, largest: NDArray[np.float64] | float
    ) -> NDArray[np.int64]:
        """Section 10, 7 and 8: the words of a total, signed.

        transcript: of the attempt in which the shares were made.
        largest: what no word exceeds, in units.
        """
        if isinstance(largest, np.ndarray) and total.size != largest.size + 1:
            raise Refusal("invalid-array")
        label = sum_label(transcript, self.name, self.members)
        words = read_total(total, label, self._group, largest, blind=self.blind)
        return words.view(np.int64)

    @property
    def _group(self) -> tuple[bytes, str]:
        """Section 9: the group's secret, and the agreement's digest."""
        secret = bytes.fromhex(self.view.recall(f"secret/{self.scope}"))
        return secret, self.view.session.agreement
