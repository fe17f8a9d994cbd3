"""Drives a program through all vectors, and says of each case what was wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel

from clustering_protocols.common.errors import Malformed
from clustering_protocols.terms.agreements import read_agreement
from party_sdk.conformance.comparison import find_difference
from party_sdk.conformance.contributions import ContributionReader, Leeway
from party_sdk.conformance.programs import Answer, Program
from party_sdk.conformance.vectors import (
    LEVELS,
    Layer,
    Level,
    RecordedSession,
    Refusal,
    SessionFile,
    VectorCase,
)

_FROM: Final[Mapping[str, Level]] = {
    "sums": "B",
    "alignment": "B",
    "intersection": "D",
    "linkage": "D",
}
"""From which level on a layer is asked; all others from A on."""


class CheckedCase(BaseModel):
    """A case, and what came of it.

    wrong: where the answer differs, and how; empty if the program conforms.
    left_out: whether the program has no such call.
    """

    file: str
    session: str = ""
    case: str
    section: str
    call: str
    wrong: str = ""
    left_out: bool = False

    @property
    def sentence(self) -> str:
        """Return where the case stands, and what was wrong."""
        place = " / ".join(filter(None, (self.file, self.session, self.case)))
        return f"section {self.section}, {place}, {self.call}: {self.wrong}"


@dataclass(frozen=True, kw_only=True)
class Checker:
    """Checks one program.

    level: the highest level of conformance that is asked of it.
    """

    program: Program
    level: str = LEVELS[-1]

    def check_layers(self, layers: Mapping[str, Layer]) -> Iterator[CheckedCase]:
        """Yield the cases that need no session."""
        for name, layer in layers.items():
            if self.level < _FROM.get(name, LEVELS[0]):
                continue
            for case in layer.cases:
                yield self._judge(_CasePlace(file=name), case)

    def check_sessions(self, files: Mapping[str, SessionFile]) -> Iterator[CheckedCase]:
        """Yield each step of each session, then what a party must refuse."""
        for name, file in files.items():
            for session in file.sessions:
                if session.level <= self.level:
                    yield from self._check_session(name, session)

    def _check_session(
        self, file: str, session: RecordedSession
    ) -> Iterator[CheckedCase]:
        place = _CasePlace(file=file, session=session.name, reader=_reader_of(session))
        for step in session.steps:
            found = self._judge(place, step)
            yield found
            if found.left_out or (found.wrong and step is session.steps[0]):
                return
        for refusal in session.refusals:
            yield self._check_refusal(place, session, refusal)

    def _check_refusal(
        self, place: _CasePlace, session: RecordedSession, refusal: Refusal
    ) -> CheckedCase:
        """Return whether a party stops at a message, and stays stopped."""
        for step in session.steps[: refusal.after]:
            self.program.ask(step.call, step.input)
        found = self._judge(place, refusal.step)
        genuine = session.steps[refusal.after]
        if not found.wrong and "problem" not in self.program.ask(
            genuine.call, genuine.input
        ):
            wrong = (
                "the program continues, once the message comes as it should have been"
            )
            return found.model_copy(update={"wrong": wrong})
        return found

    def _judge(self, place: _CasePlace, case: VectorCase) -> CheckedCase:
        answer = self.program.ask(case.call, case.input)
        unknown = "unknown" in answer
        return CheckedCase(
            file=place.file,
            session=place.session,
            case=case.name,
            section=case.section,
            call=case.call,
            wrong="" if unknown else find_wrong(case, answer, place.reader),
            left_out=unknown,
        )


@dataclass(frozen=True, kw_only=True)
class _CasePlace:
    """Where a case stands; who reads contributions there."""

    file: str
    session: str = ""
    reader: ContributionReader | None = field(default=None, repr=False)


def find_wrong(
    case: VectorCase, answer: Answer, reader: ContributionReader | None = None
) -> str:
    """Return where an answer is not what a case says, and how; empty if it is.

    reader: of contributions, in sessions.
    """
    answer = json.loads(json.dumps(answer))
    due = {"problem": case.problem} if case.problem else {"output": case.output}
    contribution = (case.output or {}).get("contribution")
    if reader is None or contribution is None or "output" not in answer:
        return find_difference(due, answer, case.tolerance)
    return reader.find_difference(
        _bytes(case.input["task"]),
        _bytes(contribution),
        _bytes(answer["output"].get("contribution", "")),
        tolerance=case.tolerance,
        leeway=Leeway(tuple(case.turned), case.units, tuple(case.chosen), case.values),
    )


def _reader_of(session: RecordedSession) -> ContributionReader:
    agreed, _ = read_agreement(session.steps[0].input["agreement"].encode())
    return ContributionReader(agreement=agreed, receivers=session.receivers)


def _bytes(text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError:
        raise Malformed("The program answered what is not base64.") from None
