"""What a risk is: one sentence, its level, its harm, and what would remove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TypeVar

K = TypeVar("K")


class RiskLevel(StrEnum):
    """Who brings a risk, in the order in which people read them."""

    OPTION = "option"  # a choice of this session; another choice removes it
    COLLUSION = "collusion"  # parties that collude or lie: they may get rows
    DESIGN = "by-design"  # what everybody accepts by taking part


class Harm(IntEnum):
    """The worst that can follow, worst first."""

    ROWS = 1  # one other computes or reads values of rows
    ROWS_JOINTLY = 2  # two who collude do, or one who knows rows already
    GEOMETRY = 3  # how rows lie to each other, or in which group they fall
    STATISTICS = 4  # means, counts and sums over several rows
    RESULT = 5  # the result is wrong, or does not come


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What a session lets others learn or do.

    sentence: at most 25 words.
    remedy: what would remove it.
    measured: what was measured, with its number; empty where nothing was.
    detail: when, how and how far, for the annex; empty where the sentence says it.
    readers: of what is so by design, who learns what.
    """

    sentence: str
    level: RiskLevel
    harm: Harm
    remedy: str
    measured: str = ""
    detail: str = ""
    readers: tuple[tuple[str, str], ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return everything that it says to people."""
        said = (self.sentence, self.measured, self.remedy, self.detail)
        return tuple(filter(None, (*said, *(what for _, what in self.readers))))


def worst_first(risks: Mapping[K, Risk]) -> dict[K, Risk]:
    """Return risks in the order in which people read them: worst first."""
    return dict(sorted(risks.items(), key=lambda item: item[1].harm))


def sentences_of(risks: Mapping[K, Risk]) -> dict[K, str]:
    """Return the sentence of each risk."""
    return {code: risk.sentence for code, risk in risks.items()}
