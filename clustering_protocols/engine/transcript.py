"""The transcript: what everybody is told, in one hash chain that all parties share.

Every attempt of a round adds a line: where it belongs, what it asks, who is left out,
and a digest of the task of each group that is told the same. A line names the one
before it, so its own digest stands for everything until then: the *transcript*. Masks,
tags, envelopes and private draws are bound to it. A party that is told something else
than the others, in whichever round, has another transcript from there on: what it sends
fits nothing that the others send.

A party gets the lines since its last answer with its next task, and follows them before
it reads anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from clustering_protocols.common.errors import AuditBroken, TaskRefused
from clustering_protocols.common.values import Value
from clustering_protocols.contract import SessionContext
from clustering_protocols.records import hash_chain
from clustering_protocols.records.rounds import RoundRef
from clustering_protocols.terms.terms import Audience, Layout, Name

AGREED: Final = 1
"""The number of the first line, which names the agreement."""


class OpeningLine(Value):
    """The first line: which session this is."""

    number: Literal[1]
    previous: str
    agreement: str


class Entry(RoundRef):
    """A line: one attempt of a round.

    asks: the kind of the task.
    left_out: the slots that are not asked.
    told: SHA-256 (hex) of what each group is told, in the order of the groups; empty
        for a group of which nobody is asked.
    """

    number: int = Field(ge=AGREED + 1)
    previous: str
    asks: str
    left_out: tuple[Name, ...]
    told: tuple[str, ...]


_LINE: TypeAdapter[OpeningLine | Entry] = TypeAdapter(OpeningLine | Entry)


def write_first_line(session: SessionContext) -> str:
    """Return the first line of a session."""
    return hash_chain.write(None, AGREED, {"agreement": session.agreement_digest})


def group_digests(
    layout: Layout, audience: Audience, digests: Mapping[str, str]
) -> list[str]:
    """Return what each group is told, in the order of the groups.

    digests: of what each slot is told, for those that are told something.

    Raises ValueError if members of one group are told different things.
    """
    found = []
    for group in layout.audiences(audience):
        here = {digests[slot] for slot in group if slot in digests}
        if len(here) > 1:
            raise ValueError(f"not all of {group} are told the same")
        found.append(here.pop() if here else "")
    return found


def append_attempt(
    lines: Sequence[str],
    here: RoundRef,
    *,
    asks: str,
    left_out: Sequence[str],
    told: Sequence[str],
) -> list[str]:
    """Return the lines with one more, for an attempt that is opened."""
    said = {**here.model_dump(), "asks": asks, "left_out": left_out, "told": told}
    line = hash_chain.write(lines[-1], number_of(lines[-1]) + 1, said)
    return [*lines, line]


def last(lines: Sequence[str]) -> Entry:
    """Return what the last line says, of the attempt that is open.

    :class:`TaskRefused` if no line tells of an attempt.
    """
    try:
        return Entry.model_validate_json("".join(lines[-1:]))
    except ValidationError:
        raise TaskRefused("The analyst does not say what everybody was told.") from None


def since(lines: Sequence[str], number: int) -> Sequence[str]:
    """Return the lines after a number, of those that are at hand."""
    return lines[max(0, number + 1 - number_of(lines[0])) :]


def number_of(line: str) -> int:
    """Return the number of a line."""
    return _LINE.validate_json(line).number


def follow(
    lines: Sequence[str], agreement: str, number: int, digest: str
) -> list[tuple[Entry, str]]:
    """Return the entries that follow a known line, each with its transcript.

    lines: they may begin with lines that are known already.
    agreement: the agreement's digest, which the first line must name.
    number, digest: of the last line that is known; 0 and :data:`hash_chain.START` if
        none is.

    Raises TaskRefused if the lines do not follow the known one.
    """
    parsed = [_parse(line, agreement) for line in lines]
    later = [
        each for each in zip(parsed, lines, strict=True) if each[0].number > number
    ]
    known = lines[: len(lines) - len(later)]
    if known and hash_chain.digest(known[-1]) != digest:
        raise TaskRefused("The analyst reports another past than before.")
    try:
        for _ in hash_chain.read(
            (line for _, line in later), first=number + 1, previous=digest
        ):
            pass
    except AuditBroken:
        raise TaskRefused("The analyst leaves out what was told before.") from None
    return [
        (each, hash_chain.digest(line))
        for each, line in later
        if isinstance(each, Entry)
    ]


def _parse(line: str, agreement: str) -> OpeningLine | Entry:
    try:
        found = _LINE.validate_json(line)
    except ValidationError:
        raise TaskRefused("A line of what was told cannot be read.") from None
    if isinstance(found, OpeningLine) and found.agreement != agreement:
        raise TaskRefused("What was told belongs to another agreement.")
    return found
