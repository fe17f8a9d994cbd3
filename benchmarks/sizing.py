"""How fast protocols are, and the page of what sessions of a size take.

    python -m benchmarks.sizing [--protocols NAME …] [--page]

Simulates a session of each protocol over four parties with one thread and writes its
speed, elementary steps per second of processor time, into
``party_sdk/advice/sizing.json``, from which `coterie advise` and `coterie session
create` tell minutes; and ``docs/sizing.md``. Of a larger session of those whose analyst
works on blocks it writes which share of the analyst's processor time that is: what
workers can take over. A second session of each is traced: the memory that steps and
answers take must stay below what the protocol states; ends with 1 if one does not.
``--page`` writes the page again from the file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import sizing_page
from clustering_protocols import catalogue, simulation
from clustering_protocols.contract import Params
from clustering_protocols.contract.sizing import PROCESS, WORD, Extent, Needs
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.terms import Layout

B = TypeVar("B")
R = TypeVar("R")

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "party_sdk" / "advice" / "sizing.json"
PAGE = ROOT / "docs" / "sizing.md"
FEATURES, CLUSTERS, PARTIES = 16, 10, 4
FEW_ROWS: Final = 300
MANY_ROWS: Final = 1_000_000
FIXED: Final = 1 << 20
"""Bytes of a step that no row brings; of those for the process some are for them."""
ACROSS, BESIDE = Layout.lattice(PARTIES, 1), Layout.lattice(1, PARTIES)


class Case(NamedTuple):
    """One way whose speed is measured."""

    protocol: str
    layout: Layout
    rows: int
    values: Mapping[str, Any] = {}
    rows_in_blocks: int = 0


CASES: Final = (
    Case("dc", ACROSS, 20_000, rows_in_blocks=MANY_ROWS),
    Case("fccm", BESIDE, 1_000, {"n_init": 2, "max_iter": 20}),
    Case("llf", ACROSS, 40_000),
    Case("llf", BESIDE, 10_000, {"max_iter": 20}),
    Case("omnifc", ACROSS, 2_000),
    Case(
        *("omnifc", ACROSS, 20_000, {"distances": "landmarks", "max_rows": 200_000}),
        rows_in_blocks=200_000,
    ),
    Case("pqmds", BESIDE, 20_000, rows_in_blocks=MANY_ROWS),
)


def table(rows: int) -> FloatArray:
    """Return rows (n, 16) in ten groups that overlap, within [0, 1]."""
    rng = np.random.default_rng(0)
    middles = rng.uniform(0.3, 0.7, (CLUSTERS, FEATURES))
    X = middles[rng.integers(CLUSTERS, size=rows)]
    X += rng.normal(0, 0.08, (rows, FEATURES))
    found: FloatArray = np.clip(X, 0.0, 1.0)
    return found


def params_of(case: Case) -> Params:
    """Return a case's parameters."""
    values = {"n_clusters": CLUSTERS, **case.values}
    return catalogue.parse_params(case.protocol, values)


def needs_of(case: Case, rows: int, rounds: int) -> Needs:
    """Return what a case's protocol says, of a session that took so many rounds."""
    params, known = params_of(case), catalogue.protocol(case.protocol)

    def said(updates: int) -> Needs:
        extent = Extent(
            rows=rows, features=FEATURES, layout=case.layout, updates=updates
        )
        found = known.sizes().needs(params, extent)
        if found is None:
            raise TypeError(f"{case.protocol} does not say what it needs.")
        return found

    return said(1 + rounds - said(1).rounds)


class Traced(simulation.Session):
    """Traces the most memory of each role above what stood before its step."""

    peaks: dict[str, int]

    @contextmanager
    def clock(self, role: str) -> Iterator[None]:
        """Trace what is done inside."""
        if "peaks" not in self.__dict__:
            self.peaks = {}
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        yield
        took = tracemalloc.get_traced_memory()[1] - before
        self.peaks[role] = max(took, self.peaks.get(role, 0))


class Noting:
    """An engine that notes the processor time of kernels."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def map(self, kernel: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        """Yield what a kernel returns for each block."""
        for block in blocks:
            begun = time.process_time()
            result = kernel(block)
            self.seconds += time.process_time() - begun
            yield result


def seconds(
    case: Case, rows: int, engine: Engine = ONE_THREAD
) -> tuple[float, float, Needs]:
    """Return processor seconds of the analyst and of the slowest party."""
    parts = simulation.split(table(rows), case.layout, 0)
    ended = simulation.Session(
        *(params_of(case), case.layout, parts.data, 0),
        timer=time.process_time,
        runs_on=engine,
    ).to_the_end()
    costs = ended.costs
    party = max(costs[slot].seconds for slot in case.layout.names)
    said = needs_of(case, rows, ended.rounds)
    return costs[simulation.ANALYST].seconds, party, said


def speed(case: Case) -> dict[str, Any]:
    """Return steps per second of both roles, and the seconds of a round without rows."""
    seconds(case, FEW_ROWS)  # compiles
    analyst, party, few = seconds(case, FEW_ROWS)
    fixed = (analyst + party) / few.rounds
    analyst, party, needs = seconds(case, case.rows)
    return {
        "rows": case.rows,
        "analyst": _steps(needs.analyst_work, analyst),
        "party": _steps(needs.party_work, party),
        "seconds_of_a_round": round(fixed, 5),
        "in_blocks": in_blocks(case),
    }


def in_blocks(case: Case) -> float:
    """Return which share of the analyst's time kernels take; 0 where no rows are many."""
    if not case.rows_in_blocks:
        return 0.0
    engine = Noting()
    analyst, _, _ = seconds(case, case.rows_in_blocks, engine)
    return round(engine.seconds / analyst, 2)


def _steps(work: float, took: float) -> float:
    return float(f"{work / max(took, 1e-3):.3g}")


def memory(case: Case) -> dict[str, Any]:
    """Return traced and stated bytes of both roles, the process itself left out."""
    parts = simulation.split(table(case.rows), case.layout, 0)
    tracemalloc.start()
    session = Traced(params_of(case), case.layout, parts.data, 0)
    ended = session.to_the_end()
    tracemalloc.stop()
    needs = needs_of(case, case.rows, ended.rounds)
    extent = Extent(rows=case.rows, features=FEATURES, layout=case.layout)
    own = WORD * extent.party_rows * extent.party_features  # it holds its rows already
    party = own + max(session.peaks[slot] for slot in case.layout.names)
    return {
        "analyst": session.peaks[simulation.ANALYST],
        "analyst_stated": needs.analyst_memory - PROCESS,
        "party": party,
        "party_stated": needs.party_memory - PROCESS,
    }


def measure(case: Case) -> dict[str, Any]:
    """Return speed and memory of a case, and print them."""
    with threadpool_limits(1):
        found = speed(case) | {"memory": memory(case)}
    print(case.protocol, dict(case.values), json.dumps(found), flush=True)
    return found


def above(found: Mapping[str, Any]) -> bool:
    """Return whether more memory was traced than the protocol states."""
    took = found["memory"]
    return any(
        took[role] > took[f"{role}_stated"] + FIXED for role in ("analyst", "party")
    )


def name_of(case: Case) -> str:
    """Return under which name a case's speed stands."""
    return needs_of(case, case.rows, 0).measured_as


def main() -> int:
    """Measure, and write file and page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = sorted({case.protocol for case in CASES})
    parser.add_argument("--protocols", nargs="+", default=names, choices=names)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    if not given.page:
        speeds = known.get("speeds", {})
        for case in (case for case in CASES if case.protocol in given.protocols):
            speeds.setdefault(case.protocol, {})[name_of(case)] = measure(case)
        known = {
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "processors": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "speeds": speeds,
        }
        MEASURED.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(sizing_page.render(known))
    ways = [way for each in known["speeds"].values() for way in each.values()]
    return int(any(map(above, ways)))


if __name__ == "__main__":
    sys.exit(main())
