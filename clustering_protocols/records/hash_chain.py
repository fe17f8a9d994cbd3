"""A hash chain of lines: each names the SHA-256 of the one before it.

The analyst keeps a chain per session (its audit), a party a chain of what it sent. Only the
exact text of a line is ever hashed, never a re-serialisation. Changing, inserting,
removing or swapping lines breaks the chain. Leaving out the last lines does not: that
shows against a receipt, which names a line by its number and its SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from clustering_protocols.common.errors import AuditBroken
from clustering_protocols.records import codec

START: Final = "0" * 64


def digest(line: str) -> str:
    """Return the SHA-256 (hex) by which the next line, or a receipt, names a line."""
    return sha256(line.encode()).hexdigest()


def write(last: str | None, number: int, fields: Mapping[str, Any]) -> str:
    """Return the line that follows the last one.

    last: the line before it; None for the first.
    number: the number of the new line, counted from 1.
    fields: JSON values; ``number`` and ``previous`` are added.
    """
    previous = START if last is None else digest(last)
    return codec.canonical_text({**fields, "number": number, "previous": previous})


def read(
    lines: Iterable[str], *, first: int = 1, previous: str = START
) -> Iterator[dict[str, Any]]:
    """Yield the fields of the lines, checking the chain line by line.

    lines: a whole chain, or the part of one that follows a known line.
    first: the number that the first of the lines must have.
    previous: the digest of the line before it.

    Raises AuditBroken at the first line that does not follow the one before it.
    """
    for number, line in enumerate(lines, start=first):
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not (
            isinstance(entry, dict)
            and entry.get("previous") == previous
            and entry.get("number") == number
        ):
            raise AuditBroken(f"Line {number} does not follow the line before it.")
        yield entry
        previous = digest(line)
