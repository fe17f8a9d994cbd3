"""The administrative log as it grows: each line is handed on, and its number kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, Final

import click

from clustering_protocols.common.errors import AuditBroken
from clustering_protocols.records import hash_chain

if TYPE_CHECKING:
    from analyst_service.storage.database import Database

_SECONDS: Final = 1.0

HandOn = Callable[[str, Mapping[str, Any]], None]
"""Takes a line and what it says."""


@dataclass(frozen=True, slots=True)
class Position:
    """The last line that was handed on: its number, and its digest."""

    number: int = 0
    digest: str = hash_chain.START


class PositionFile:
    """Keeps a position from one start to the next; without a path, for one alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self) -> Position:
        """Return the position; the beginning where none was kept."""
        if self._path is None or not self._path.exists():
            return Position()
        try:
            return Position(**json.loads(self._path.read_text()))
        except (OSError, ValueError, TypeError):
            raise click.ClickException(
                f"{self._path} holds no position in the log. Without it, all lines are "
                "handed on again."
            ) from None

    def write(self, position: Position) -> None:
        """Keep a position."""
        if self._path is None:
            return
        fresh = self._path.with_name(f"{self._path.name}.new")
        fresh.write_text(json.dumps(asdict(position)))
        fresh.replace(self._path)


def follow(database: Database, kept: PositionFile, hand_on: HandOn) -> None:
    """Hand on the lines behind a position, and those that come, without an end.

    A line counts as handed on once ``hand_on`` returns: none is left out, and one may
    come twice after a failure.

    Raises AuditBroken if a line does not follow what was handed on before it.
    """
    position = kept.read()
    while True:
        for line, entry in _behind(database, position):
            hand_on(line, entry)
            position = Position(entry["number"], hash_chain.digest(line))
            kept.write(position)
        sleep(_SECONDS)


def _behind(
    database: Database, position: Position
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the lines behind a position; it has to stand in the log still."""
    from analyst_service.transactions.administrative_log import AdministrationLog

    number = position.number
    with database.read() as transaction:
        lines = list(AdministrationLog(transaction).lines(max(0, number - 1)))
    if number and [hash_chain.digest(line) for line in lines[:1]] != [position.digest]:
        raise AuditBroken(f"Line {number} is not the one that was handed on.")
    behind = lines[1:] if number else lines
    entries = hash_chain.read(behind, first=number + 1, previous=position.digest)
    return zip(behind, entries, strict=True)
