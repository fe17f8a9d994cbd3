"""Asking a person who is not there: the question is kept, and its process ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from clustering_protocols.randomness import length_prefixed
from party_sdk.inspection import Inspection
from party_sdk.roster import Roster
from party_sdk.supervisor.clock import now
from party_sdk.supervisor.files import OrderFiles
from party_sdk.supervisor.models import (
    Answer,
    AskedMember,
    OrderState,
    Question,
    QuestionKind,
)

_SENTENCES = {
    QuestionKind.RISKS: "The terms bring risks that your policy does not accept. Do you "
    "accept all of them?",
    QuestionKind.SAFETY_NUMBER: "You know too few of the other members by their cards. "
    "Did each of these members read you this safety number?",
    QuestionKind.AGREEING: "Members sign the terms, exchange keys, and compare keyed "
    "digests of ids and of the names of columns. No value of your table is in that, and "
    "no id that can be read. May these leave, now and in later rounds?",
    QuestionKind.CONTRIBUTION: "May this contribution leave?",
}


class Awaited(Exception):
    """A person has to decide before this party goes on; the question is kept."""


class Declined(Exception):
    """A person has said no; ``answer`` holds when and why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.kind.value)
        self.answer = answer


@dataclass
class Asking:
    """Asks by the files of an order."""

    files: OrderFiles
    confirm: bool
    refused: Answer | None = field(default=None, init=False)

    def ask(
        self, kind: QuestionKind, about: str, sentence: str = "", **shown: Any
    ) -> bool:
        """Return what was answered; keep the question and raise if nothing was.

        Parameters
        ----------
        about : str
            What tells this question from another of its kind.

        Raises
        ------
        Awaited
        Overtaken
            If there is another order meanwhile: nothing is asked for this one.
        """
        number = sha256(length_prefixed(kind.value, about)).hexdigest()[:16]
        answer = self.files.answers().to(number)
        if answer is not None:
            self.refused = None if answer.yes else answer
            return answer.yes
        with self.files.alone():
            self.files.check()
            question = Question(
                id=number,
                kind=kind,
                sentence=sentence or _SENTENCES[kind],
                asked_at=now(),
                **shown,
            )
            self.files.ask(question)
            self.files.tell(state=OrderState.WAITING, question=number)
        raise Awaited

    def risks(self, left: Mapping[str, str], terms: str) -> None:
        """Ask whether risks are accepted; :class:`Declined` after a no."""
        about = f"{terms} {' '.join(sorted(left))}"
        if not self.ask(QuestionKind.RISKS, about, risks=dict(left)) and self.refused:
            raise Declined(self.refused)

    def meet(self, roster: Roster, *, is_known: bool) -> bool:
        """Ask whether the others read the same safety number, where that is needed."""
        if is_known:
            return False
        members = tuple(AskedMember(**asdict(seat)) for seat in roster.seats)
        number = roster.safety_number
        return self.ask(
            QuestionKind.SAFETY_NUMBER, number, safety_number=number, members=members
        )

    def let_go(self, found: Inspection) -> bool:
        """Ask whether a contribution may leave, where anybody wants to be asked.

        Once for all by which members only agree with each other.
        """
        if not (self.confirm or found.asks or self.files.folder.is_held):
            return True
        if found.only_agrees and not found.asks:
            return self.ask(QuestionKind.AGREEING, "")
        kind = QuestionKind.CHOICE if found.asks else QuestionKind.CONTRIBUTION
        sentence = f"{found.asks} May it leave?" if found.asks else ""
        about = f"{found.stage} {found.round} {found.attempt} {found.digest}"
        return self.ask(kind, about, sentence, contribution=found)
