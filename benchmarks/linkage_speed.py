"""Speed and size of linking rows by match keys, beside the intersection of exact ids.

    python -m benchmarks.linkage_speed [--rows 4000] [--keys 6]

Two parties hold as many rows each, four fifths of them common. All roles run in this
process, one after the other, on bytes as over HTTP; the clock counts processor time.

sum      processor seconds of all roles together.
ratio    over the sum of one exact id, and over K times that of one key.
bytes    what a party sends for each row and key, beyond few rows.

Then the masks of one party alone, on one thread and on two, in wall time: that shows a
gain only where two processors are idle.

Ends with 1 if K keys take over 1.2 times as long as K times one key, one key takes over
twice as long as an exact id, or a party sends over 64 bytes for a row and key.
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
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.secrecy.joint_mask import JointMask
from clustering_protocols.shared_stages.alignment.params import Alignment

SLACK, TWICE, MOST_BYTES = 1.2, 2.0, 64


class Run(simulation.Session):
    """One session up to the end of the alignment."""

    def __init__(self, n_rows: int, keys: Sequence[str]) -> None:
        alignment = Alignment(method="ecdh", match_keys=tuple(keys))
        params = ProductQuantisation(n_clusters=2, alignment=alignment)
        super().__init__(
            params, LAYOUT, tables(n_rows), seed=0, timer=time.process_time
        )
        self.total = 0.0
        self.n_sent = 0

    def measure(self) -> None:
        """Go through all rounds of the stage; the secrets before it are not counted."""
        names = {"intersection", "linkage"}
        while self.open.stage not in names:
            self.turn()
        before = {role: replace(cost) for role, cost in self.costs.items()}
        while self.open.stage in names:
            self.turn()
        self.total = sum(c.seconds - before[r].seconds for r, c in self.costs.items())
        slot = LAYOUT.names[0]
        cost = self.costs[slot]
        self.n_sent = cost.sent_bytes - before[slot].sent_bytes


def measured(n_rows: int, keys: Sequence[str]) -> Run:
    """Return a run that went through the stage and found the common rows."""
    run = Run(n_rows, keys)
    run.measure()
    if len(run.recall(LAYOUT.names[0], Selection).rows) != n_rows - n_rows // 5:
        raise SystemExit("The linkage is wrong.")
    return run


def threads(n_values: int) -> tuple[float, float]:
    """Return the least wall seconds of one party's masks, on one thread and on two."""
    values = [f"{number}".encode() for number in range(n_values)]
    found: dict[int, list[float]] = {1: [], 2: []}
    for n_threads in (1, 2) * 5:
        mask = JointMask(KeyedStream(bytes(32)), LocalEngine(n_threads))
        began = time.monotonic()
        mask.go_on(mask.begin(values, b"speed", KeyedStream(bytes(32))))
        found[n_threads].append(time.monotonic() - began)
    return min(found[1]), min(found[2])


def main() -> int:
    """Print the ratios; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--keys", type=int, default=6)
    asked = parser.parse_args()
    n, k = asked.rows, asked.keys
    keys = [f"person | zero-pad:{20 + number}" for number in range(k)]
    measured(50, ())  # imports, and compiles, what all of them take
    empty = measured(50, keys)
    exact, one, all_ = (measured(n, each) for each in ((), keys[:1], keys))
    per_key = (all_.n_sent - empty.n_sent) / ((n - 50) * k)
    for name, run in (("exact id", exact), ("one key", one), (f"{k} keys", all_)):
        print(f"{name:9} {n:7,} rows  sum {run.total:7.2f} s")
    first, many = one.total / exact.total, all_.total / (k * one.total)
    print(
        f"one key over one exact id: {first:.2f}; {k} keys over {k} × one: {many:.2f}"
    )
    print(f"bytes that a party sends for each row and key: {per_key:.1f}")
    single, double = threads(n)
    print(
        f"masks of one party, wall: {single:.2f} s on one thread, {double:.2f} s on two"
    )
    return int(first > TWICE or many > SLACK or per_key > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
