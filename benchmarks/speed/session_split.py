"""Where the time of a session went: what it waited for, and what processors did.

What it waited for is read from its audit; the parts add up to the whole. A part is as
long as the slowest made it: of ten parties, *answering* ends with the last one.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class _Round:
    """When a round was opened, and when the last of each kind happened."""

    opened: datetime
    sent: datetime = field(init=False)
    answered: datetime = field(init=False)
    complete: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.sent = self.answered = self.complete = self.opened


def split(
    entries: Iterable[Mapping[str, Any]], begin: datetime, end: datetime
) -> dict[str, float]:
    """Return the seconds of a completed session, by what it waited for.

    entries: of its audit, in order.
    begin, end: of the parties, who join first and read their results last.
    """
    spent: defaultdict[str, float] = defaultdict(float)
    current: _Round | None = None
    for entry in entries:
        at, event = datetime.fromisoformat(entry["at"]), entry["event"]
        if event in {"round-opened", "finished"}:
            since = begin if current is None else current.complete
            name = "joining" if current is None else "stepping"
            spent[name] += (at - since).total_seconds()
            current = _Round(at)
        elif current is None:
            continue
        elif event == "task-sent":
            current.sent = current.answered = at
        elif event == "contribution":
            current.answered = max(at, current.sent)
        elif event == "round-complete":
            current.complete = at
            for name, since, until in (
                ("handing out", current.opened, current.sent),
                ("answering", current.sent, current.answered),
                ("noticing", current.answered, at),
            ):
                spent[name] += (until - since).total_seconds()
    if current is not None:
        spent["ending"] = (end - current.opened).total_seconds()
    return dict(spent)


def shares(spent: Mapping[str, float]) -> str:
    """Return named seconds and what part of their sum each is, the largest first."""
    whole = sum(spent.values())
    ordered = sorted(spent.items(), key=lambda each: -each[1])
    return ", ".join(
        f"{name} {seconds:.2f} s ({seconds / whole:.0%})" for name, seconds in ordered
    )


def idle_seconds() -> float:
    """Return for how long processors of this machine have had nothing to do."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
