"""Drives a program through all vectors, and says of each case what was wrong."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, Self

from pydantic import BaseModel

from benchmarks.vectors.contributions import ContributionReader, decode, find_difference
from benchmarks.vectors.form import (
    LEVELS,
    Layer,
    Level,
    RecordedSession,
    Refusal,
    SessionFile,
    VectorCase,
)
from clustering_protocols.common.errors import InvalidParameters, Malformed
from clustering_protocols.terms.agreements import read_agreement

Answer = dict[str, Any]


class Program(Protocol):
    """A program that answers calls."""

    def ask(self, call: str, given: dict[str, Any]) -> Answer:
        """Return the answer: an output, a problem, or that the call is unknown."""


class ProgramProcess:
    """The process of a program: see "A program under test" of spec/conformance.md.

    Raises InvalidParameters if it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        except OSError as error:
            raise InvalidParameters(
                f"{command[0]!r} cannot be started: {error.strerror}."
            ) from None

    def ask(self, call: str, given: dict[str, Any]) -> Answer:
        """Return the answer; raise :class:`Malformed` if there is no JSON object."""
        reader, writer = self._process.stdout, self._process.stdin
        assert reader is not None and writer is not None  # noqa: S101, PT018  pipes
        try:
            writer.write(json.dumps({"call": call, "input": given}) + "\n")
            writer.flush()
            line = reader.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Malformed(
                "The program ended without an answer.",
                remedy="Read what it wrote to standard error.",
            )
        try:
            answer = json.loads(line)
        except ValueError:
            raise Malformed("The program wrote a line that is not JSON.") from None
        if not isinstance(answer, dict):
            raise Malformed("The program wrote a line that is not a JSON object.")
        return answer

    def __enter__(self) -> Self:
        """Return the program."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the program's input, which ends the program."""
        self._process.communicate()


_FIRST_LEVEL: Final[Mapping[str, Level]] = {
    "sums": "B",
    "alignment": "B",
    "linkage": "D",
}
"""The level from which a layer is asked; every other layer is asked from A."""


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
            if self.level < _FIRST_LEVEL.get(name, LEVELS[0]):
                continue
            for case in layer.cases:
                yield self._judge(case, file=name)

    def check_sessions(self, files: Mapping[str, SessionFile]) -> Iterator[CheckedCase]:
        """Yield each step of each session, then what a party must refuse."""
        for name, file in files.items():
            for session in file.sessions:
                if session.level <= self.level:
                    yield from self._check_session(name, session)

    def _check_session(
        self, file: str, session: RecordedSession
    ) -> Iterator[CheckedCase]:
        agreed, _ = read_agreement(session.steps[0].input["agreement"].encode())
        judge = partial(
            self._judge,
            reader=ContributionReader(agreement=agreed, receivers=session.receivers),
            file=file,
            session=session.name,
        )
        for step in session.steps:
            found = judge(step)
            yield found
            if found.left_out or (found.wrong and step is session.steps[0]):
                return
        for refusal in session.refusals:
            yield self._check_refusal(judge, session, refusal)

    def _check_refusal(
        self,
        judge: Callable[[VectorCase], CheckedCase],
        session: RecordedSession,
        refusal: Refusal,
    ) -> CheckedCase:
        """Return whether a party stops at a message, and stays stopped."""
        for step in session.steps[: refusal.after]:
            self.program.ask(step.call, step.input)
        found = judge(refusal.step)
        genuine = session.steps[refusal.after]
        if not found.wrong and "problem" not in self.program.ask(
            genuine.call, genuine.input
        ):
            wrong = (
                "the program continues, once the message comes as it should have been"
            )
            return found.model_copy(update={"wrong": wrong})
        return found

    def _judge(
        self, case: VectorCase, reader: ContributionReader | None = None, **place: str
    ) -> CheckedCase:
        answer = self.program.ask(case.call, case.input)
        unknown = "unknown" in answer
        return CheckedCase(
            **place,
            case=case.name,
            section=case.section,
            call=case.call,
            wrong="" if unknown else find_wrong(case, answer, reader),
            left_out=unknown,
        )


def find_wrong(
    case: VectorCase, answer: Answer, reader: ContributionReader | None = None
) -> str:
    """Return where an answer differs from the case, and how; empty if it does not.

    reader: reads contributions, in sessions.
    """
    answer = json.loads(json.dumps(answer))
    due = {"problem": case.problem} if case.problem else {"output": case.output}
    contribution = (case.output or {}).get("contribution")
    if reader is None or contribution is None or "output" not in answer:
        return find_difference(due, answer, case.tolerance)
    came = answer["output"].get("contribution", "")
    return reader.find_difference(case, decode(contribution), decode(came))
