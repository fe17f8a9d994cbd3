"""One party process of `benchmarks.speed.llf_speed`: tells where its time went.

Reads its invitation and the risks that it accepts, says that it is ready, waits for a
line, runs, and prints seconds as JSON: on its rows, on its disk, for its uploads (which
wait for the next task), waiting otherwise; and of processor time for each of these, for
joining, and for all but joining and its rows.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from clustering_protocols.engine import PartyEngine
from clustering_protocols.protocols.llf import kernels
from party_sdk.analyst_client.http_analyst import HttpAnalyst
from party_sdk.home.policy import Policy
from party_sdk.home.process_exit import run_to_the_end
from party_sdk.party.ledger import Ledger
from party_sdk.party.participant import Party
from party_sdk.party.party_session import PartySession
from party_sdk.tables import open_table

TIMED = (
    (PartyEngine, PartyEngine.reply, "rows"),
    (PartySession, PartySession.save_state, "disk"),
    (Ledger, Ledger.note_sending, "disk"),
    (Ledger, Ledger.note_receipt, "disk"),
    (HttpAnalyst, HttpAnalyst.contribute, "upload"),
    (HttpAnalyst, HttpAnalyst.task, "waiting"),
)


def main() -> None:
    """Take part once."""
    folder, slot = Path(sys.argv[1]), sys.argv[2]
    names = [name for _, _, name in TIMED]
    spent = dict.fromkeys([*names, *(f"processor: {name}" for name in names)], 0.0)
    for owner, method, name in TIMED:
        setattr(owner, method.__name__, _timed(method, name, spent))
    invitation = sys.stdin.readline().strip()
    risks = frozenset(json.loads(sys.stdin.readline()))
    data = open_table(folder / f"{slot}.parquet")
    _compile(len(data.columns))
    print("ready", flush=True)
    sys.stdin.readline()
    policy = Policy(accepted_risks=risks, least_known=0)
    begin = time.process_time()
    with Party.join(invitation, policy=policy, home=folder / slot) as party:
        party.enrol(data)
        joined = time.process_time()
        party.run(data)
    spent["processor: joining"] = joined - begin
    beside = time.process_time() - joined - spent["processor: rows"]
    print(json.dumps({**spent, "processor: beside its rows": beside}))


def _compile(width: int) -> None:
    """Load the compiled passes, which a party does once in its life."""
    V, ones = np.zeros((1, width)), np.ones(width)
    rows = np.zeros((1, width))
    kernels.cmeans_sums(rows, ones, ones, V, ones, np.zeros((1, width)), np.zeros(1))


def _timed(method: Any, name: str, spent: dict[str, float]) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        begin, idle = time.perf_counter(), time.process_time()
        try:
            return method(*args, **options)
        finally:
            spent[name] += time.perf_counter() - begin
            spent[f"processor: {name}"] += time.process_time() - idle

    return call


if __name__ == "__main__":
    run_to_the_end(main)  # as `coterie` does
