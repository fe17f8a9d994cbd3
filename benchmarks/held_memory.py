"""Memory of processes: what they may have of their own, and what they have (Linux)."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_EVERY_SECONDS = 0.01


@dataclass(slots=True)
class Memory:
    """Bytes of a process: its own (RssAnon), and with mapped files in memory (VmRSS)."""

    own: int = 0
    resident: int = 0

    def raise_to(self, other: Memory) -> None:
        """Take over what is larger."""
        self.own = max(self.own, other.own)
        self.resident = max(self.resident, other.resident)


def hold(gibibytes: float, process: int = 0) -> None:
    """Let a process (this one: 0) have so much of its own, or fail.

    RLIMIT_DATA: heaps and private mappings that are written, not files that are mapped
    to be read. No limit where it is 0.
    """
    if gibibytes:
        limit = int(gibibytes * 2**30)
        resource.prlimit(process, resource.RLIMIT_DATA, (limit, limit))


def now(process: int | str) -> Memory:
    """Return the memory of a process by its number, or "self"; none of one that ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return Memory()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    own, resident = (
        int(found.get(name, "0").split()[0]) << 10 for name in ("RssAnon", "VmRSS")
    )
    return Memory(own, resident)


@contextmanager
def watched(processes: Iterable[int]) -> Iterator[dict[int, Memory]]:
    """Note the most memory of processes as long as this lasts."""
    most = {process: Memory() for process in processes}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY_SECONDS):
            for process, seen in most.items():
                seen.raise_to(now(process))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()
