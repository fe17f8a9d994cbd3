"""The evidence page: what the benchmarks measure, in one place, written by a program.

    python -m benchmarks.evidence [--parts fidelity tables] [--protocols NAME …]
        [--ways NAME …] [--sets NAME …]

Measures fidelity, rounds and bytes of every way of every protocol
(``benchmarks.evidence_fidelity``), runs the tables of the papers as processes of their
own, and writes ``benchmarks/evidence.json``,
``docs/evidence.md``, and tables and pictures under ``docs/evidence``. Takes
about half an hour on two processors. Parts can be measured one by one, of each part some
protocols; of fidelity also some ways on some sets (``--ways spectral "spectral,
landmarks" --sets iris``). Each row is kept as soon as it is measured, beside all others:
those of sets that are not here stay. ``--parts`` with nothing behind it writes all
of them again from the JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from benchmarks import evidence_page, evidence_pictures
from benchmarks.evidence_fidelity import SETS, Case, here, measure_all, shown

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "benchmarks" / "evidence.json"
PAGE = ROOT / "docs" / "evidence.md"
PICTURES = ROOT / "docs" / "evidence"

# Tables of the papers beside ours, with few repeats: the defaults take hours.
TABLES: Final = {
    "dc": "benchmarks.papers.dc_tables --trials 3",
    "fccm": "benchmarks.papers.fccm_tables --starts 20 --simulated 1",
    "llf": "benchmarks.papers.llf_tables --runs 10 --protected-runs 1",
    "omnifc": "benchmarks.papers.omnifc_tables --seeds 1 --rows 500",
    "pqmds": "benchmarks.papers.pqmds_tables --rows 2000 --table 2",
}
PARTS = ("fidelity", "tables")
VERSIONS = ("coterie", "numpy", "scipy", "scikit-learn", "cryptography")
_MOST_SECONDS = 1800


def machine() -> dict[str, Any]:
    """Return what the figures were measured on: nothing that names the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processors": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in VERSIONS},
    }


def printed(module: str) -> dict[str, Any]:
    """Run a benchmark; return its command, its exit code and what it printed."""
    command = ["python", "-m", *shlex.split(module)]
    print(shlex.join(command), flush=True)
    try:
        done = subprocess.run(
            [sys.executable, *command[1:]],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"command": shlex.join(command), "left_out": "It took too long."}
    return {
        "command": shlex.join(command),
        "exit": done.returncode,
        "output": done.stdout.strip(),
    }


def fidelity(
    sets: Sequence[str], seeds: int, rows: int, is_wanted: Callable[[Case], bool]
) -> None:
    """Measure what is wanted on sets that are here; keep each row beside the others."""
    for row in measure_all(here(sets), seeds, rows, is_wanted):
        print(shown(row), flush=True)
        known = json.loads(MEASURED.read_text()).get("fidelity", [])
        found = {_case(each): each for each in known} | {_case(row): row}
        keep(fidelity=list(found.values()))


def _case(row: Mapping[str, Any]) -> Case:
    return row["protocol"], row["way"], row["partitioning"], row["set"]


def keep(**parts: Any) -> None:
    """Write parts of what was measured beside those that are there."""
    known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    text = json.dumps(known | parts, indent=1, ensure_ascii=False)
    MEASURED.write_text(text + "\n")


def tables(protocols: Collection[str]) -> None:
    """Run the tables of some protocols and keep what each printed."""
    for name in (name for name in TABLES if name in protocols):
        known = json.loads(MEASURED.read_text()).get("tables", {})
        found = known | {name: printed(TABLES[name])}
        keep(tables={each: found[each] for each in TABLES if each in found})


def write_pages(measured: dict[str, Any]) -> None:
    """Write the page, its pictures and its tables."""
    PICTURES.mkdir(exist_ok=True)
    evidence_pictures.draw(measured, PICTURES)
    PAGE.write_text(evidence_page.render(measured) + "\n")
    for name, text in evidence_page.files(measured).items():
        (PICTURES / name).write_text(text)


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--protocols", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--ways", nargs="+", default=())
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    given = parser.parse_args()

    def is_wanted(case: Case) -> bool:
        return case[0] in given.protocols and case[1] in (given.ways or case[1:2])

    if "fidelity" in given.parts:
        keep(machine=machine(), rows=given.rows, seeds=given.seeds)
        fidelity(given.sets, given.seeds, given.rows, is_wanted)
    if "tables" in given.parts:
        tables(given.protocols)
    write_pages(json.loads(MEASURED.read_text()))


if __name__ == "__main__":
    main()
