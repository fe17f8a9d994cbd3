"""Asking a person who is not there: the question is kept, and its process ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.terms.risks import Risk, sentences_of
from clustering_protocols.terms.terms import Terms
from party_sdk.application.asker import AGREEING, Answer, Asker
from party_sdk.home.clock import now
from party_sdk.party.kept_mappings import MappingChange
from party_sdk.party.roster import Roster
from party_sdk.supervisor.files import OrderFiles
from party_sdk.supervisor.models import (
    Decision,
    OrderState,
    PendingQuestion,
    QuestionKind,
)

_SENTENCES = {
    QuestionKind.RISKS: "The terms bring risks that your policy does not accept. Do you "
    "accept all of them?",
    QuestionKind.SAFETY_NUMBER: "You know too few of the other members by their cards. "
    "Did each of these members read you this safety number?",
    QuestionKind.AGREEING: f"{AGREEING} May these leave, now and in later rounds?",
    QuestionKind.CONTRIBUTION: "May this contribution leave, and the rest of its kind?",
}


class DecisionPending(Exception):
    """A person has to decide before this party continues; the question is kept."""


class DecisionDeclined(Exception):
    """A person has said no; ``answer`` holds when and why."""

    def __init__(self, answer: Decision) -> None:
        super().__init__(answer.kind.value)
        self.answer = answer


@dataclass
class OrderAsker(Asker):
    """Asks by the files of an order."""

    files: OrderFiles
    refused: Decision | None = field(default=None, init=False)
    rest: bool = field(default=False, init=False)

    def ask(
        self, kind: QuestionKind, about: str, sentence: str = "", **shown: Any
    ) -> bool:
        """Return what was answered; keep the question and raise if nothing was.

        about: what tells this question from another of its kind.

        Raises DecisionPending.
        Raises Overtaken if there is another order meanwhile: nothing is asked for this
            one.
        """
        number = sha256(length_prefixed(kind.value, about)).hexdigest()[:16]
        answer = self.files.answers().to(number)
        if answer is not None:
            self.refused = None if answer.yes else answer
            self.rest = answer.rest
            return answer.yes
        with self.files.alone():
            self.files.check()
            question = PendingQuestion(
                id=number,
                kind=kind,
                sentence=sentence or _SENTENCES[kind],
                asked_at=now(),
                **shown,
            )
            self.files.ask(question)
            self.files.tell(state=OrderState.WAITING, question=number)
        raise DecisionPending

    @property
    def is_present(self) -> bool:
        """Return that somebody answers, sooner or later."""
        return True

    def note(self, notes: Mapping[str, Any]) -> None:
        """Show nothing: what is asked about stands in its question."""

    def accept_risks(self, risks: Mapping[str, Risk], terms: str) -> None:
        """Ask for all risks at once; :class:`DecisionDeclined` after a no."""
        about = f"{terms} {' '.join(sorted(risks))}"
        shown = sentences_of(risks)
        if not self.ask(QuestionKind.RISKS, about, risks=shown) and self.refused:
            raise DecisionDeclined(self.refused)

    def meet(self, roster: Roster, *, is_known: bool) -> bool:
        """Ask whether the others read the same safety number, where that is needed."""
        if is_known:
            return False
        number, seats = roster.safety_number, roster.seats
        return self.ask(
            QuestionKind.SAFETY_NUMBER, number, safety_number=number, members=seats
        )

    def change_mapping(self, change: MappingChange) -> bool:
        """Ask whether another mapping of the table counts than the one that is kept."""
        sentence = f"{change.sentence} Is the table to be read by the new mapping?"
        return self.ask(QuestionKind.MAPPING, change.digest, sentence)

    def agree(self) -> bool:
        """Ask once for all contributions by which members only agree."""
        return self.ask(QuestionKind.AGREEING, "")

    def let_go(self, found: Inspection, terms: Terms | None) -> Answer:
        """Ask whether a contribution may leave; all of it stands in the question."""
        del terms
        kind = QuestionKind.CHOICE if found.asks else QuestionKind.CONTRIBUTION
        sentence = f"{found.asks} May it leave?" if found.asks else ""
        about = f"{found.stage} {found.round} {found.attempt} {found.digest}"
        if not self.ask(kind, about, sentence, contribution=found):
            return Answer.NO
        return Answer.ALL if self.rest else Answer.ONCE
