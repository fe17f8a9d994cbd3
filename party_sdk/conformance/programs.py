"""Programs under test: a call goes in on one line, its answer comes out on one line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from clustering_protocols.common.errors import InvalidParameters, Malformed

Answer = dict[str, Any]


def _describe_end() -> Malformed:
    return Malformed(
        "The program ended without an answer.",
        remedy="Read what it wrote to standard error.",
    )


class Program(Protocol):
    """What answers calls."""

    def ask(self, call: str, given: dict[str, Any]) -> Answer:
        """Return the answer: an output, a problem, or that the call is unknown."""


class ProgramProcess:
    """A program of its own: see "A program under test" of spec/conformance.md.

    Raises InvalidParameters if it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603  the operator names it
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
        """Return the answer; :class:`Malformed` if there is none, or it is none."""
        reader, writer = self._process.stdout, self._process.stdin
        assert reader is not None and writer is not None  # noqa: S101, PT018  pipes
        try:
            writer.write(json.dumps({"call": call, "input": given}) + "\n")
            writer.flush()
        except BrokenPipeError:
            raise _describe_end() from None
        line = reader.readline()
        if not line:
            raise _describe_end()
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its input, at which it ends."""
        del kind, error, trace
        self._process.communicate()
