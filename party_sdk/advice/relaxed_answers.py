"""Which answers somebody would have to give otherwise, where no method fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from clustering_protocols.common.suitability import Exposure, RoundBudget
from party_sdk.advice.advice import Situation, advise
from party_sdk.advice.advice_form import ANY

_MOST_CHANGES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxedAnswers:
    """Other answers to as few questions as possible, with which methods fit.

    answers: by the names of :data:`~party_sdk.advice.advice_form.QUESTIONS`, the nearest
        other answers with which something fits.
    methods: protocol and algorithm of each method that fits then, best first.
    """

    answers: Mapping[str, str]
    methods: tuple[tuple[str, str], ...]


def find_relaxed_answers(situation: Situation) -> list[RelaxedAnswers]:
    """Return the least changes of answers that make methods fit.

    situation: one that nothing fits.

    Returns one for each question of which the answer alone is in the way; where there
    is none, one for each two questions of which the answers together are.
    """
    wider = list(_wider_answers(situation))
    for n_changes in range(1, _MOST_CHANGES + 1):
        found: dict[frozenset[str], RelaxedAnswers] = {}
        for changes in combinations(wider, n_changes):
            questions = frozenset(question for question, *_ in changes)
            if len(questions) == n_changes and questions not in found:
                fields = {
                    name: value for *_, each in changes for name, value in each.items()
                }
                fits = advise(replace(situation, **fields)).fits
                if fits:
                    found[questions] = RelaxedAnswers(
                        answers={question: answer for question, answer, _ in changes},
                        methods=tuple((fit.protocol, fit.way.name) for fit in fits),
                    )
        if found:
            return list(found.values())
    return []


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
