"""The transcript, a hash chain of the tasks of all parties.

Every attempt of a round adds a line with its address, the kind of its task, the slots
that are left out, and a digest of each group's task. Each line contains the digest of
the line before it. The digest of the last line therefore represents all lines; it is
called the *transcript*. Masks, tags, envelopes and private draws are bound to it. If a
party receives a different task from the others, its transcript differs from then on,
and the others can no longer use its messages.

With its next task, a party receives the lines since its last answer, which it checks
before it reads anything else.
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
"""The number of the first line, which contains the agreement's digest."""


class OpeningLine(Value):
    """The first line, which identifies the agreement of the session."""

    number: Literal[1]
    previous: str
    agreement: str


class Entry(RoundRef):
    """A line that describes one attempt of a round.

    asks: the kind of the task.
    left_out: the slots that receive no task.
    told: SHA-256 (hex) of each group's task content, in the order of the groups; empty
        for a group without a task.
    """

    number: int = Field(ge=AGREED + 1)
    previous: str
    asks: str
    left_out: tuple[Name, ...]
    told: tuple[str, ...]


_LINE: TypeAdapter[OpeningLine | Entry] = TypeAdapter(OpeningLine | Entry)


def format_first_line(session: SessionContext) -> str:
    """Return the first line of a session's transcript."""
    return hash_chain.write(None, AGREED, {"agreement": session.agreement_digest})


def group_digests(
    layout: Layout, audience: Audience, digests: Mapping[str, str]
) -> list[str]:
    """Return the digest of each group's content, in the order of the groups.

    digests: the digest of the content for each slot that receives a task or result.

    Raises ValueError if members of one group receive different contents.
    """
    by_group = []
    for group in layout.audience_groups(audience):
        distinct = {digests[slot] for slot in group if slot in digests}
        if len(distinct) > 1:
            raise ValueError(f"members of {group} received different tasks")
        by_group.append(distinct.pop() if distinct else "")
    return by_group


def append_attempt(
    lines: Sequence[str],
    address: RoundRef,
    *,
    asks: str,
    left_out: Sequence[str],
    told: Sequence[str],
) -> list[str]:
    """Return the lines with an additional line for a new attempt."""
    fields = {**address.model_dump(), "asks": asks, "left_out": left_out, "told": told}
    line = hash_chain.write(lines[-1], line_number(lines[-1]) + 1, fields)
    return [*lines, line]


def parse_last_entry(lines: Sequence[str]) -> Entry:
    """Parse the entry of the open attempt; raise :class:`TaskRefused` if there is none."""
    try:
        return Entry.model_validate_json("".join(lines[-1:]))
    except ValidationError:
        raise TaskRefused("The analyst sent no transcript.") from None


def lines_after(lines: Sequence[str], number: int) -> Sequence[str]:
    """Return the lines that follow line ``number``."""
    return lines[max(0, number + 1 - line_number(lines[0])) :]


def line_number(line: str) -> int:
    """Return the number of a line."""
    return _LINE.validate_json(line).number


def follow_lines(
    lines: Sequence[str], agreement: str, number: int, digest: str
) -> list[tuple[Entry, str]]:
    """Return the entries that follow a known line, each with the transcript up to it.

    lines: consecutive lines, the first of which may already be known.
    agreement: the agreement's digest, which the first line must contain.
    number, digest: those of the last known line, or 0 and :data:`hash_chain.START`.

    Raises TaskRefused if the lines do not follow the known one.
    """
    parsed = [_parse_line(line, agreement) for line in lines]
    n_known = sum(entry.number <= number for entry in parsed)
    if n_known and hash_chain.digest(lines[n_known - 1]) != digest:
        raise TaskRefused("The analyst changed lines that this party has received.")
    new_lines = lines[n_known:]
    try:
        for _ in hash_chain.read(new_lines, first=number + 1, previous=digest):
            pass
    except AuditBroken:
        raise TaskRefused("The transcript omits earlier lines.") from None
    return [
        (entry, hash_chain.digest(line))
        for entry, line in zip(parsed[n_known:], new_lines, strict=True)
        if isinstance(entry, Entry)
    ]


def _parse_line(line: str, agreement: str) -> OpeningLine | Entry:
    try:
        entry = _LINE.validate_json(line)
    except ValidationError:
        raise TaskRefused("A line of the transcript cannot be read.") from None
    if isinstance(entry, OpeningLine) and entry.agreement != agreement:
        raise TaskRefused("The transcript belongs to another agreement.")
    return entry
