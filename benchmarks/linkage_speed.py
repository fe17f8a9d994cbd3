"""Speed and size of linking rows by match keys, beside the intersection of exact ids.

    python -m benchmarks.linkage_speed [--rows 4000] [--keys 6]

Two parties hold as many rows each, four fifths of them common. All roles run in this
process, one after the other, on bytes as over HTTP; the clock counts processor time.

sum      processor seconds of all roles together.
ratio    over the sum of one exact id, and over K times that of one key.
bytes    what a party sends for each row and key, beyond few rows and an exact id.
cores    wall time of all roles, one after the other, where each has one thread, over that
         where it has two. It shows a gain only where two processors are idle: the least
         of several short turns counts.

Ends with 1 if K keys take over 1.2 times as long as K times one key, one key takes over
twice as long as an exact id, a party sends over 64 bytes for a row and key beyond those of
an exact id, or two cores are less than 1.6 times as fast.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.psi_speed import LAYOUT, tables
from clustering_protocols import simulation
from clustering_protocols.contract.selection import Selection
from clustering_protocols.engine import PartyEngine
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine, LocalEngine
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment.params import Alignment

SLACK, TWICE, MOST_BYTES, FASTER = 1.2, 2.0, 64, 1.6
STAGES = frozenset({"intersection", "linkage"})
_TURNS, _SHORT = 7, 600


class Run(simulation.Session):
    """One session up to the end of the alignment.

    engine: runs the kernels of each party.
    """

    def __init__(
        self, n_rows: int, keys: Sequence[str], engine: Engine = ONE_THREAD
    ) -> None:
        self.engine = engine
        alignment = Alignment(method="ecdh", match_keys=tuple(keys))
        params = ProductQuantisation(n_clusters=2, alignment=alignment)
        super().__init__(
            params, LAYOUT, tables(n_rows), seed=0, timer=time.process_time
        )
        self.total = 0.0
        self.wall = 0.0
        self.n_sent = 0

    def party(self, slot: str) -> PartyEngine:
        """Return a party whose kernels run on the engine."""
        return replace(super().party(slot), engine=self.engine)

    def measure(self) -> None:
        """Go through all rounds of the stage; the secrets before it are not counted."""
        while self.open.stage not in STAGES:
            self.turn()
        before = {role: replace(cost) for role, cost in self.costs.items()}
        began = time.monotonic()
        while self.open.stage in STAGES:
            self.turn()
        self.wall = time.monotonic() - began
        self.total = sum(c.seconds - before[r].seconds for r, c in self.costs.items())
        slot = LAYOUT.names[0]
        cost = self.costs[slot]
        self.n_sent = cost.sent_bytes - before[slot].sent_bytes


def measured(n_rows: int, keys: Sequence[str], engine: Engine = ONE_THREAD) -> Run:
    """Return a run that went through the stage and found the common rows."""
    run = Run(n_rows, keys, engine)
    run.measure()
    if len(run.recall(LAYOUT.names[0], Selection).rows) != n_rows - n_rows // 5:
        raise SystemExit("The linkage is wrong.")
    return run


def on_two_cores(keys: Sequence[str]) -> float:
    """Return how much faster parties of two threads are, by the least of short turns."""
    engines = (ONE_THREAD, LocalEngine(2))
    walls = [[measured(_SHORT, keys, e).wall for e in engines] for _ in range(_TURNS)]
    single, double = map(min, zip(*walls, strict=True))
    return single / double


def main() -> int:
    """Print the ratios; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--keys", type=int, default=6)
    asked = parser.parse_args()
    n, k = asked.rows, asked.keys
    keys = [f"person | zero-pad:{20 + number}" for number in range(k)]
    few, empty = measured(50, ()), measured(50, keys)  # imports, and compiles, too
    exact, one, all_ = (measured(n, each) for each in ((), keys[:1], keys))
    beyond = all_.n_sent - empty.n_sent - (exact.n_sent - few.n_sent)
    per_key = beyond / ((n - 50) * k)
    for name, run in (("exact id", exact), ("one key", one), (f"{k} keys", all_)):
        print(f"{name:9} {n:7,} rows  sum {run.total:7.2f} s")
    first, many = one.total / exact.total, all_.total / (k * one.total)
    print(
        f"one key over one exact id: {first:.2f}; {k} keys over {k} × one: {many:.2f}"
    )
    print(f"bytes beyond an exact id, for each row and key: {per_key:.1f}")
    cores = on_two_cores(keys)
    print(f"two cores over one, wall: {cores:.2f}")
    slow = first > TWICE or many > SLACK or cores < FASTER
    return int(slow or per_key > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
