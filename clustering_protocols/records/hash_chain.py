"""A hash chain of lines, in which each line contains the SHA-256 of the previous one.

The analyst keeps one chain per session (its audit), and a party a chain of what it has
sent. Only the exact text of a line is hashed, and never a re-serialisation of it. A
change, insertion, removal or exchange of lines breaks the chain. The removal of the
last lines does not break the chain; it is detected by comparison with a receipt, which
identifies a line by number and SHA-256.
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
    """Return the SHA-256 (hex) with which the next line, or a receipt, refers to a line."""
    return sha256(line.encode()).hexdigest()


def write(last: str | None, number: int, fields: Mapping[str, Any]) -> str:
    """Return the line that follows the last line of a chain.

    last: the last line; None if the chain is empty.
    number: the number of the new line, counted from 1.
    fields: JSON values, to which ``number`` and ``previous`` are added.
    """
    previous = START if last is None else digest(last)
    return codec.canonical_text({**fields, "number": number, "previous": previous})


def read(
    lines: Iterable[str], *, first: int = 1, previous: str = START
) -> Iterator[dict[str, Any]]:
    """Yield the fields of each line, and check the chain line by line.

    lines: a whole chain, or the part of a chain that follows a known line.
    first: the number that the first of the lines must have.
    previous: the digest of the line before the first.

    Raises AuditBroken at the first line that does not follow from the one before it.
    """
    for number, line in enumerate(lines, start=first):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not (
            isinstance(entry, dict)
            and entry.get("previous") == previous
            and entry.get("number") == number
        ):
            raise AuditBroken(f"Line {number} does not follow the line before it.")
        yield entry
        previous = digest(line)
