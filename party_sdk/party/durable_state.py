"""Where a party stands in a session: what it answered last, in one of two files.

``answered.0.arrays`` and ``answered.1.arrays`` are written in turns, each with all that
follows from an answer, and one sync makes a turn durable. A crash within it damages the
older file alone: the newer one still says where the party stood before. Each file begins
with a checksum of the rest, which tells the two cases apart. The first is written beside
its place, and moved there.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.common.errors import Equivocation, NotReady
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import Journal
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import ByteArray
from party_sdk.home.files import overwrite_private, read_private, write_private

_VERSION: Final = 4
_CHECKSUM_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRound:
    """The last round that was answered, and the memory before and after it."""

    round: int = 0
    attempt: int = 0
    task_digest: str = ""
    contribution_digest: str = ""
    before: Memory = field(default_factory=Memory)
    after: Memory = field(default_factory=Memory)

    @property
    def place(self) -> tuple[int, int]:
        """Return round and attempt."""
        return self.round, self.attempt

    def base(self, round_: int, attempt: int) -> Memory:
        """Return the memory from which a new round or attempt starts.

        A round that is opened again starts from the memory before it.
        """
        if round_ == self.round and attempt > self.attempt:
            return self.before
        if round_ > self.round:
            return self.after
        raise Equivocation(
            f"Round {round_}, attempt {attempt} came after round {self.round}, attempt "
            f"{self.attempt}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableState:
    """All that has to outlast a crash before a party's next byte leaves.

    turn: how often it was written.
    contribution: of the last answer.
    lines: of the party's ledger: those that may not be on its disk yet.
    """

    turn: int = 0
    answered: AnsweredRound = field(default_factory=AnsweredRound)
    journal: Journal = field(default_factory=Journal)
    contribution: bytes = field(default=b"", repr=False)
    lines: tuple[str, ...] = field(default=(), repr=False)

    @property
    def sent_contribution(self) -> bytes:
        """Return the bytes of the last answer, exactly as they were first sent."""
        if sha256(self.contribution).hexdigest() != self.answered.contribution_digest:
            raise NotReady("The last answer was changed; ask for a new session.")
        return self.contribution


class StandingFiles:
    """The two files in a party's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self) -> DurableState:
        """Return where the party stands; at its beginning if nothing is kept.

        Raises NotReady if neither file is whole, or another release wrote them.
        """
        found = [turn for path in self._paths if (turn := self._whole(path))]
        if found:
            return max(found, key=lambda each: each.turn)
        if any(path.exists() for path in self._paths):
            raise NotReady(f"{self._paths[0]} was changed; ask for a new session.")
        return DurableState()

    def save(self, standing: DurableState) -> None:
        """Write what follows :meth:`load`; durable when it returns.

        Its turn is the one after that which was loaded.
        """
        path = self._paths[standing.turn % 2]
        content = _encode(standing)
        checksum = zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little")
        if standing.turn > 1:
            overwrite_private(path, checksum + content)
            return
        write_private(path, checksum + content)  # there is none to go back to

    @property
    def _paths(self) -> tuple[Path, Path]:
        return self._folder / "answered.0.arrays", self._folder / "answered.1.arrays"

    def _whole(self, path: Path) -> DurableState | None:
        """Return what a file holds; None if it is missing, or a crash has damaged it."""
        try:
            read = read_private(path)
        except FileNotFoundError:
            return None
        checksum, content = read[:_CHECKSUM_BYTES], read[_CHECKSUM_BYTES:]
        if zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little") != checksum:
            return None
        return _decode(content)


def _encode(standing: DurableState) -> bytes:
    answered = standing.answered
    arrays: dict[str, NDArray[Any]] = {
        "journal": _bytes(standing.journal.encode()),
        "contribution": _bytes(standing.contribution),
    }
    kinds: dict[str, list[str]] = {}
    for when, memory in (("before", answered.before), ("after", answered.after)):
        kinds[when] = sorted(memory.entries)
        for index, kind in enumerate(kinds[when]):
            arrays[f"{when}.{index}"] = _bytes(memory.entries[kind])
    arrays["lines"] = _bytes("\n".join(standing.lines).encode())
    header = {
        "version": _VERSION,
        "turn": standing.turn,
        "round": answered.round,
        "attempt": answered.attempt,
        "task_digest": answered.task_digest,
        "contribution_digest": answered.contribution_digest,
        **kinds,
    }
    return codec.encode(header, arrays)


def _bytes(content: bytes) -> ByteArray:
    return np.frombuffer(content, np.uint8)


def _decode(content: bytes) -> DurableState:
    header, arrays = codec.decode(content)
    answered = _read_answered_round(header, arrays)
    lines = arrays["lines"].tobytes().decode()
    return DurableState(
        turn=header["turn"],
        answered=answered,
        journal=Journal.decode(arrays["journal"].tobytes()),
        contribution=arrays["contribution"].tobytes(),
        lines=tuple(lines.split("\n")) if lines else (),
    )


def _read_answered_round(
    header: Mapping[str, Any], arrays: codec.Arrays
) -> AnsweredRound:
    if header["version"] != _VERSION:
        raise NotReady("The memory was written by another release of coterie.")
    return AnsweredRound(
        round=header["round"],
        attempt=header["attempt"],
        task_digest=header["task_digest"],
        contribution_digest=header["contribution_digest"],
        before=_memory_of("before", header, arrays),
        after=_memory_of("after", header, arrays),
    )


def _memory_of(when: str, header: Mapping[str, Any], arrays: codec.Arrays) -> Memory:
    return Memory(
        {
            kind: arrays[f"{when}.{index}"].tobytes()
            for index, kind in enumerate(header[when])
        }
    )
