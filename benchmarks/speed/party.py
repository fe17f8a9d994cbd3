"""Runs one party of a measured session; prints what it took as JSON, and saves labels.

    python -m benchmarks.speed.party FOLDER SLOT INVITATION RISK …

It imports no more than a party needs, whose memory is measured.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from clustering_protocols.engine import PartyEngine
from party_sdk.home.policy import Policy
from party_sdk.home.process_exit import run_without_finalisation
from party_sdk.party.participant import Party
from party_sdk.tables import open_table


def take_part(folder: Path, slot: str, invitation: str, risks: list[str]) -> None:
    """Run one of the parties; print what it took, and save ``SLOT.labels.npy``.

    ``beside rows``: median CPU seconds between two answers, which skips those in
    which something is imported. ``memory``: the largest resident memory, MiB.
    """
    reply, begun, ended = PartyEngine.reply, list[float](), list[float]()

    def timed(*arguments: Any, **options: Any) -> Any:
        begun.append(time.process_time())
        outcome = reply(*arguments, **options)
        ended.append(time.process_time())
        return outcome

    PartyEngine.reply = timed  # type: ignore[method-assign]  # times it
    policy = Policy(accepted_risks=frozenset(risks), least_known=0)
    data = open_table(folder / f"{slot}.parquet")
    # in a small table, few rows are near a given start
    choices = {"allow_given_start": True}
    here: Any = {"policy": policy, "home": folder / slot, "choices": choices}
    with Party.join(invitation, **here) as party:
        party.enrol(data)
        result = party.run(data)
    beside = median(
        end - begin for end, begin in zip(begun[1:], ended[:-1], strict=True)
    )
    # not `ru_maxrss`, which starts from the memory of the process that started this one
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    memory = int(peak) / 1024
    print(json.dumps({"beside rows": beside, "memory": memory}))
    np.save(folder / f"{slot}.labels.npy", np.asarray(result.labels))


if __name__ == "__main__":
    folder, slot, invitation, *risks = sys.argv[1:]
    run_without_finalisation(  # as `coterie` does
        lambda: take_part(Path(folder), slot, invitation, risks)
    )
