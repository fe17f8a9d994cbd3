"""Which one answer somebody would have to give otherwise, where no method fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from clustering_protocols.common.suitability import Exposure, RoundBudget
from party_sdk.advice.advice import Situation, advise
from party_sdk.advice.advice_form import ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxedAnswer:
    """Another answer to one question, with which methods fit.

    question: its name in :data:`~party_sdk.advice.advice_form.QUESTIONS`.
    answer: the nearest other answer with which something fits.
    methods: protocol and algorithm of each method that fits then, best first.
    """

    question: str
    answer: str
    methods: tuple[tuple[str, str], ...]


def find_relaxed_answers(situation: Situation) -> list[RelaxedAnswer]:
    """Return, for each question, the least change of its answer that makes methods fit.

    situation: one that nothing fits.

    Returns as many as there are questions of which one answer alone is in the way.
    """
    found: dict[str, RelaxedAnswer] = {}
    for question, answer, change in _wider_answers(situation):
        if question in found:
            continue
        fits = advise(replace(situation, **change)).fits
        if fits:
            methods = tuple((fit.protocol, fit.way.name) for fit in fits)
            found[question] = RelaxedAnswer(
                question=question, answer=answer, methods=methods
            )
    return list(found.values())


def _wider_answers(situation: Situation) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield question, answer and field of every answer that limits less, nearest first."""
    for rounds in RoundBudget:
        if rounds > situation.rounds:
            yield "rounds", rounds.word, {"rounds": rounds}
    for sees in Exposure:
        if situation.analyst_sees < sees < Exposure.ROWS:
            yield "analyst_sees", sees.word, {"analyst_sees": sees}
    if situation.collusion:
        yield "collusion", "no", {"collusion": False}
    if situation.shape is not None:
        yield "shape", ANY, {"shape": None}
    if situation.data is not None:
        yield "data", ANY, {"data": None}
    if not situation.overlap:
        yield "overlap", "full", {"overlap": True}
