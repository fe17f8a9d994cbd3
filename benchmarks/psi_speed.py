"""Speed and size of private set intersection between two parties, message by message.

    python -m benchmarks.psi_speed [--ids N]

Each party holds N ids, four fifths of them common. All roles run in this process, one
after the other, on bytes as over HTTP, envelopes and checks included; the clock counts
processor time, so that what others do on the machine counts less.

sum        processor seconds of all roles together: what one core takes.
path       of the slower party in each round, and of the analyst: what two cores take.
ids/s      N over path.
bytes      sent per id of one party, by both and the analyst together.

Ends with 1 if it misses its goal: path under 60 s with 100,000 ids on either side.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

import numpy as np

from clustering_protocols import simulation
from clustering_protocols.contract.selection import Selection
from clustering_protocols.numerics.data_source import DataSource, MatrixSource
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.terms import Layout

GOAL_SECONDS, GOAL_IDS = 60.0, 100_000
LAYOUT = Layout.lattice(1, 2)


def tables(n_ids: int) -> dict[str, DataSource]:
    """Return two parties of n ids; the last fifth of each is its own."""
    shift = n_ids // 5
    X = np.random.default_rng(0).normal(size=(n_ids, 2))
    return {
        slot: MatrixSource(
            X, ids=[f"patient-{row + place * shift:09d}" for row in range(n_ids)]
        )
        for place, slot in enumerate(LAYOUT.names)
    }


class Run(simulation.Session):
    """One session up to the end of the intersection."""

    def __init__(self, data: dict[str, DataSource]) -> None:
        params = ProductQuantisation(n_clusters=2, alignment=Alignment(method="ecdh"))
        super().__init__(params, LAYOUT, data, seed=0, timer=time.process_time)
        self.total = self.path = 0.0
        self.bytes = 0

    def measure(self) -> None:
        """Go through all rounds of the stage; the secrets before it are not counted."""
        while self.open.stage != "intersection":
            self.turn()
        while self.open.stage == "intersection":
            self._counted_turn()

    def _counted_turn(self) -> None:
        before = {role: replace(cost) for role, cost in self.costs.items()}
        self.turn()
        spent = {r: c.seconds - before[r].seconds for r, c in self.costs.items()}
        self.bytes += sum(
            c.sent_bytes - before[r].sent_bytes for r, c in self.costs.items()
        )
        self.total += sum(spent.values())
        self.path += spent.pop(simulation.ANALYST) + max(spent.values())


def measured(n_ids: int) -> float:
    """Print one line, and return the seconds of the slower path."""
    run = Run(tables(n_ids))
    run.measure()
    found = run.recall(LAYOUT.names[0], Selection)
    if len(found.rows) != n_ids - n_ids // 5:
        raise SystemExit("The intersection is wrong.")
    print(
        f"{n_ids:7,} ids  sum {run.total:6.1f} s  path {run.path:6.1f} s  "
        f"{n_ids / run.path:7,.0f} ids/s  {run.bytes / n_ids:5,.0f} bytes"
    )
    return run.path


def main() -> int:
    """Measure, and return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, default=GOAL_IDS)
    asked = parser.parse_args()
    path = measured(asked.ids)
    return int(path > GOAL_SECONDS * asked.ids / GOAL_IDS)


if __name__ == "__main__":
    sys.exit(main())
