"""How often an analyst that joins rows of different people is found out.

    python -m benchmarks.wrong_links [--rows 5000]

People of the made study are linked by the keys that the first table proposes. The analyst
sees which keys agree for each linked pair, and joins some of the rows to others. It knows
how rows are planted, and not which they are. It is found out where a planted row is among
those that it joins wrongly.

wrong     the share of the linked rows that it joins wrongly.
any       it takes any of them.
fewest    it takes those first on which the fewest keys agree.
safest    it takes those first whose agreeing keys are rarest among planted rows, compared
          with people: the best that it can do.

Ends with 1 if one of twenty rows, taken anyhow, is joined wrongly in over a tenth of the
sessions without being found out.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from clustering_protocols.numerics.randomness import KeyedStream, derive_key
from clustering_protocols.shared_stages.alignment.linkage.planted_rows import (
    N_PLANTED,
    draw_differing,
)
from clustering_protocols.shared_stages.alignment.match_keys.key_values import (
    key_values,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from party_sdk.tables import How
from party_sdk.tables.linkage import link_ids, propose_match_keys
from party_sdk.tables.linkage_trials import MadeHospital, make_hospitals

Pattern = tuple[bool, ...]
Shares = dict[Pattern, float]
WRONG = (0.001, 0.01, 0.05, 0.2, 1.0)
_N_DRAWS = 2_000


def people_s(
    hospitals: Sequence[MadeHospital], folder: Path
) -> tuple[Shares, list[str]]:
    """Return how often which keys agree on a person's two rows, and the keys."""
    paths = [folder / f"{place}.csv" for place in range(2)]
    for path, hospital in zip(paths, hospitals, strict=True):
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, list(hospital.cells[0]))
            table.writeheader()
            table.writerows(hospital.cells)
    keys = [each.key for each in propose_match_keys(paths[0], How()) if each.serves]
    steps = Alignment().normalisation
    one, two = (
        np.array(
            [each.values for each in key_values(link_ids(p, How(), keys), keys, steps)]
        )
        for p in paths
    )
    _, here, there = np.intersect1d(
        hospitals[0].people, hospitals[1].people, return_indices=True
    )
    first, second = one[:, here], two[:, there]
    agree = (first == second) & (first != None)  # noqa: E711  an array of texts and None
    return shares_of(agree[:, agree.any(axis=0)]), keys


def planted_s(keys: Sequence[str]) -> Shares:
    """Return how often which keys agree on a planted row."""
    drawn = [
        ~draw_differing(KeyedStream(derive_key(b"benchmark", number)), keys)
        for number in range(_N_DRAWS // N_PLANTED)
    ]
    return shares_of(np.concatenate(drawn, axis=1))


def shares_of(agree: np.ndarray) -> Shares:
    """Return how often each pattern is, given which keys (k, n) agree."""
    counted = Counter(map(tuple, agree.T.tolist()))
    return {pattern: n / counted.total() for pattern, n in counted.items()}


def found_out(
    people: Shares, planted: Shares, wrong: float, first: Callable[[Pattern], float]
) -> float:
    """Return how often an analyst is found out that takes some patterns first."""
    left, met = wrong, 0.0
    for pattern in sorted(people, key=first):
        part = min(1.0, left / people[pattern])
        met += part * planted.get(pattern, 0.0)
        left -= part * people[pattern]
        if left <= 0:
            break
    return 1 - (1 - min(1.0, met)) ** N_PLANTED


def main() -> int:
    """Print a table; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    n_rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        people, keys = people_s(make_hospitals(n_rows, 0.9, seed=7), Path(folder))
    planted = planted_s(keys)
    print(
        f"{len(keys)} keys, {N_PLANTED} planted rows, {len(people)} patterns of people\n"
    )
    print("| wrong | any | fewest | safest |\n|---|---|---|---|")
    anyhow = {wrong: 1 - (1 - wrong) ** N_PLANTED for wrong in WRONG}
    for wrong in WRONG:
        fewest = found_out(people, planted, wrong, sum)
        safest = found_out(
            people, planted, wrong, lambda p: planted.get(p, 0.0) / people[p]
        )
        print(f"| {wrong:.1%} | {anyhow[wrong]:.0%} | {fewest:.0%} | {safest:.0%} |")
    return int(anyhow[0.05] < 0.9)


if __name__ == "__main__":
    sys.exit(main())
