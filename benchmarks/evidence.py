"""The evidence page: what the benchmarks measure, in one place, written by a program.

    python -m benchmarks.evidence [--only PART …] [--check]

Parts are ``fidelity``, the tables of the papers (``dc``, ``llf``, ``fccm``, ``omnifc``,
``pqmds``), ``baselines`` and ``peers``; each writes a CSV file under ``docs/evidence``.
The page, its pictures and a table in README are made from all these files; ``--only``
without a part measures nothing and makes just these again. If a set is not on this
machine, the program says so, and what was measured on the set stays.

``--check`` writes nothing. It compares page, pictures and every number on the page with
the files, measures the first draw of every cell of papers and baselines again, and ends
with 1 if one differs. Fidelity is not measured again; a test does it for small sets.

Cells are measured with the matrix products of a processor with AVX2, also on newer
ones: k-means of whole numbers meets ties, which the last bit of a distance decides.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Final
from unittest.mock import patch

from threadpoolctl import threadpool_limits

from benchmarks import evidence_fidelity, evidence_page
from benchmarks.beside import peers
from benchmarks.papers.cells import Row, at_hand, read, rows, write

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "evidence.md"
README: Final = ROOT / "README.md"
FILES: Final = ROOT / "docs" / "evidence"
# Draws of each table, and how many of them a check measures again: all those of `fccm`,
# because its cells are the best and the mean of starts.
DRAWS: Final = {
    "dc": 8,
    "llf": 4,
    "fccm": 50,
    "omnifc": 4,
    "pqmds": 10,
    "baselines": 2,
}
DRAWS_AGAIN: Final = dict.fromkeys(DRAWS, 1) | {"fccm": 50}
PARTS: Final = ("fidelity", *DRAWS, "peers")
N_ROWS, N_SPLITS = 600, 3
TOLERANCE: Final = 0.02  # libraries round differently; a label or two may move
_TABLE: Final = re.compile(
    r"(?<=<!-- evidence -->\n).*?(?=\n<!-- end of evidence -->)", re.DOTALL
)


def load() -> dict[str, Sequence[Row]]:
    """Return the lines of each CSV file, by the name of the file."""
    return {path.stem: read(path) for path in sorted(FILES.glob("*.csv"))}


def conditions() -> list[Row]:
    """Return what the figures were measured with, except what names the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    values = {
        "processors": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
        **{n: version(n) for n in ("coterie", "numpy", "scipy", "scikit-learn")},
        "rows": N_ROWS,
        "splits": N_SPLITS,
        "parties": evidence_fidelity.PARTIES,
        "sets": len(evidence_fidelity.SETS),
        "peer_rows": peers.N_ROWS,
        "peer_columns": peers.N_COLUMNS,
        "peer_parties": peers.N_PARTIES,
        "peer_clusters": peers.N_CLUSTERS,
        "peer_updates": peers.N_UPDATES,
    }
    return [{"name": name, "value": str(value)} for name, value in values.items()]


def cells_of(part: str, draws: int) -> list[Row]:
    """Measure the cells of a paper's tables or of the baselines; return their lines."""
    name = part if part == "baselines" else f"{part}_tables"
    module = importlib.import_module(f"benchmarks.papers.{name}")
    warnings.simplefilter("ignore")  # of scikit-learn, about graphs and convergence
    with threadpool_limits(1):
        return rows(module.measure(draws))


def key(line: Row) -> tuple[str, str, str]:
    """Return what names a cell."""
    return line["table"], line["set"], line["quantity"]


def keep(part: str, measured: Sequence[Row]) -> None:
    """Write what was measured into its part's file; keep the lines of other sets."""
    path = FILES / f"{part}.csv"
    identify = evidence_fidelity.case_of if part == "fidelity" else key
    stored = read(path) if path.exists() else []
    new = {identify(line): line for line in measured}
    sets = {line["set"] for line in measured}
    kept = [x for x in stored if x["set"] not in sets or part == "fidelity"]
    write(list(({identify(x): x for x in kept} | new).values()), path)


@contextmanager
def processes() -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of two processes whose numpy computes for one kind of processor."""
    spawn, environment = get_context("spawn"), {"OPENBLAS_CORETYPE": "Haswell"}
    with patch.dict(os.environ, environment), ProcessPoolExecutor(2, spawn) as pool:
        yield pool


def measure(parts: Sequence[str]) -> None:
    """Measure parts and write their files."""
    tables = [part for part in parts if part in DRAWS]
    with processes() as pool:
        waiting = {part: pool.submit(cells_of, part, DRAWS[part]) for part in tables}
        for part, future in waiting.items():
            keep(part, future.result())
            print(f"{part}: {len(future.result())} cells", flush=True)
    if "fidelity" in parts:
        sets = list(at_hand(evidence_fidelity.SETS))
        for row in evidence_fidelity.measure_all(sets, N_SPLITS, N_ROWS):
            line = evidence_fidelity.line_of(row)
            print(*line.values(), flush=True)
            keep("fidelity", [line])
    if "peers" in parts:
        write(peers.measure(), FILES / "peers.csv")
    if parts:
        write(conditions(), FILES / "conditions.csv")


def texts() -> dict[Path, str]:
    """Return the text that the page, README and each picture must have, by path."""
    measured = load()
    pages = {PAGE: evidence_page.render(measured)}
    table = evidence_page.fidelity_table(measured)
    pages[README] = _TABLE.sub(lambda _: table, README.read_text())
    for name, svg in evidence_page.draw_pictures(measured).items():
        pages[FILES / f"{name}.svg"] = svg
    return pages


def publish() -> None:
    """Write the summaries, the page, its pictures and the table in README."""
    for name, summary in evidence_page.summarise(load()).items():
        write(summary, FILES / f"{name}.csv")
    for path, content in texts().items():
        path.write_text(content)


def faults() -> Iterator[str]:
    """Yield a sentence for each text and number that differs from the files."""
    measured = load()
    for path, content in texts().items():
        if path.read_text() != content:
            yield f"{path.relative_to(ROOT)} is not what its files say."
    for name, summary in evidence_page.summarise(measured).items():
        if list(measured[name]) != summary:
            yield f"{name}.csv is not what the other files say."
    for number in sorted(evidence_page.missing_numbers(PAGE.read_text(), measured)):
        yield f"{number} stands on the page, but in no file."


def differences(part: str) -> tuple[int, list[str]]:
    """Measure first draws again; return how many, and a line for each that differs."""
    stored = {key(line): line["first"] for line in load()[part]}
    again = [line for line in cells_of(part, DRAWS_AGAIN[part]) if line["first"]]
    differing = []
    for line in again:
        cell, known = ", ".join((part, *key(line))), stored.get(key(line))
        if not known:
            differing.append(f"{cell}: not in the file.")
            continue
        was, now = float(known), float(line["first"])
        if not abs(was - now) <= TOLERANCE * max(1.0, abs(was)):  # nor if it is NaN
            differing.append(f"{cell}: {now:g} instead of {was:g}.")
    return len(again), differing


def check() -> int:
    """Print each difference; return 1 if there is any, else 0."""
    found = list(faults())
    with processes() as pool:
        again = zip(DRAWS, pool.map(differences, DRAWS), strict=True)
        for part, (count, others) in again:
            print(f"{part}: {count} cells again, {len(others)} others", flush=True)
            found += others
    print("\n".join(found) or "Page, pictures and files hold.")
    return int(bool(found))


def main() -> int:
    """Measure and write, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.check:
        return check()
    measure(given.only)
    publish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
