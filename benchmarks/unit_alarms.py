"""How often the question about other units is asked in vain, and how often in time.

    python -m benchmarks.unit_alarms [FOLDER]

FOLDER holds the sets (`NAME.npz` with X and y); by default $COTERIE_DATA. Two more are made
here: seven far balls, and frequencies of words that few rows have.

chance, class 3, class 10   rows dealt at random; sorted by class, to three and to ten.
field                       sorted by a field and cut in three: four fields of each set.
                            That field itself differs by design and is not counted.
mix                         by a field with chance: each third of rows is mixed.

A false alarm is a field of which any party is asked; columns have no names. Misses: a
field of one of three parties in another unit, with case mix; 200 tables of each. The last
column is without the field's name. Ends with 1 where a deal has more than one false alarm
in 50 fields.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.statistics.by_leader import measure, pool
from clustering_protocols.shared_stages.statistics.other_units import (
    Measurement,
    others_of,
    suspects,
)

MOST_FALSE: Final = 1 / 50
MOST_ROWS, N_FIELDS, N_TABLES = 3_000, 4, 200


class Planted(NamedTuple):
    """A field in its usual unit, normal or lognormal, and another unit of it."""

    name: str
    mean: float
    deviation: float
    skewed: bool
    factor: float
    offset: float = 0.0


SKEWED, EVEN = True, False
PLANTED: Final = (
    Planted("HbA1c", 58, 16, SKEWED, 1 / 10.929, 23.5 / 10.929),
    Planted("glucose", 7.5, 2.5, SKEWED, 18.016),
    Planted("creatinine", 1.0, 0.35, SKEWED, 88.42),
    Planted("cholesterol", 5.2, 1.1, EVEN, 38.67),
    Planted("triglycerides", 1.7, 1.0, SKEWED, 88.57),
    Planted("bilirubin", 12, 8, SKEWED, 1 / 17.1),
    Planted("urea", 6, 2.5, SKEWED, 2.801),
    Planted("calcium", 2.35, 0.12, EVEN, 4.008),
    Planted("uric acid", 330, 85, EVEN, 1 / 59.48),
    Planted("haemoglobin", 13.8, 1.6, EVEN, 0.6207),
    Planted("c-peptide", 0.9, 0.6, SKEWED, 3.02),
    Planted("weight", 80, 16, EVEN, 2.2046),
    Planted("height", 170, 10, EVEN, 1 / 2.54),
    Planted("temperature", 36.9, 0.6, EVEN, 1.8, 32.0),
    Planted("pCO2", 5.3, 0.7, EVEN, 7.5006),
    Planted("albumin", 42, 5, EVEN, 0.1),
)


def tables(folder: Path) -> Iterator[tuple[str, FloatArray, IntArray]]:
    """Yield name, rows and classes of each set, the made ones last."""
    rng = np.random.default_rng(0)
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as held:
            X, y = held["X"].astype(np.float64), held["y"]
        chosen = rng.permutation(len(X))[:MOST_ROWS]
        yield path.stem, X[chosen], y[chosen]
    centres = 3 * np.vstack([np.zeros(3), np.eye(3), -np.eye(3)])
    ball = np.repeat(np.arange(7), 30)
    yield "seven balls", centres[ball] + rng.normal(0, 0.5, (210, 3)), ball
    kind = (rng.random(MOST_ROWS) < 0.4).astype(np.int64)
    shares = rng.uniform(0.01, 0.3, (2, 57))[kind]
    counts = rng.lognormal(0, 1, shares.shape) * rng.lognormal(-1, 1, 57)
    yield "rare words", np.where(rng.random(shares.shape) < shares, counts, 0.0), kind


def deals(
    X: FloatArray, y: IntArray, rng: np.random.Generator
) -> Iterator[tuple[str, IntArray, int]]:
    """Yield how rows are dealt: a name, each row's party, the field that decides."""
    n = len(X)
    yield "chance", rng.permutation(n) % 3, -1
    for parties in (3, 10):
        yield f"class {parties}", _cut(y.astype(np.float64), parties), -1
    for field in rng.permutation(X.shape[1])[:N_FIELDS].tolist():
        yield "field", _cut(X[:, field], 3), field
        ranks = np.argsort(np.argsort(X[:, field], kind="stable")) / n
        yield "mix", _cut(ranks + rng.normal(0, 0.35, n), 3), -1


def _cut(values: FloatArray, parties: int) -> IntArray:
    """Return the party of each row, which has the rows next to it in a sorted column."""
    dealt = np.empty(len(values), dtype=np.int64)
    dealt[np.argsort(values, kind="stable")] = np.arange(len(values)) * parties
    return dealt // len(values)


def alarmed(parts: list[FloatArray], name: str = "x") -> set[int]:
    """Return the places of the columns of which any party is asked."""
    own = [measure(MatrixSource(X), moments=True, ranges=False) for X in parts]
    pooled, columns = (
        pool(own),
        [Measurement(p, f"{p}", name) for p in range(len(parts[0].T))],
    )
    return {
        int(found.name)
        for each in own
        for found in suspects(columns, each, others_of(each, pooled))
    }


def false_alarms(folder: Path) -> float:
    """Print false alarms by set and deal; return the largest share of a deal."""
    by_deal: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    print("false alarms of fields", "of fields", "set", sep="\t")
    for name, X, y in tables(folder):
        hits = total = 0
        for deal, party, field in deals(X, y, np.random.default_rng(1)):
            parts = [X[party == each] for each in range(party.max() + 1)]
            n, alarms = X.shape[1] - (field >= 0), alarmed(parts) - {field}
            hits, total = hits + len(alarms), total + n
            by_deal[deal][0] += len(alarms)
            by_deal[deal][1] += n
        print(hits, total, name, sep="\t")
    for deal, (hits, total) in by_deal.items():
        print(hits, total, f"dealt by {deal}: {hits / total:.4f}", sep="\t")
    hits, total = (sum(each[place] for each in by_deal.values()) for place in (0, 1))
    print(hits, total, f"all: {hits / total:.4f}", sep="\t")
    most = max(hits / total for hits, total in by_deal.values())
    print(f"\nof a deal: {most:.4f}; at most {MOST_FALSE:g}")
    return most


def site(planted: Planted, n: int, rng: np.random.Generator) -> FloatArray:
    """Return a field at one site: its mean and deviation are those of its cases."""
    mean = planted.mean + 0.3 * planted.deviation * rng.normal()
    deviation = planted.deviation * np.exp(0.12 * rng.normal())
    if not planted.skewed:
        return rng.normal(mean, deviation, n)
    mean = max(mean, planted.mean / 2)
    variance = np.log1p((deviation / mean) ** 2)
    return rng.lognormal(np.log(mean) - variance / 2, np.sqrt(variance), n)


def found_units() -> None:
    """Print in how many of all tables the party in another unit is asked."""
    rng = np.random.default_rng(2)
    print("\nasked, of tables with a wrong unit", "field", "without its name", sep="\t")
    for planted in PLANTED:
        named = unnamed = 0
        for _ in range(N_TABLES):
            parts = [site(planted, 250, rng)[:, None] for _ in range(3)]
            parts[0] = planted.factor * parts[0] + planted.offset
            named += bool(alarmed(parts, planted.name))
            unnamed += bool(alarmed(parts))
        print(
            f"{named / N_TABLES:.2f}",
            planted.name,
            f"{unnamed / N_TABLES:.2f}",
            sep="\t",
        )


def main() -> int:
    """Print both; return the exit code."""
    folder = Path(sys.argv[1] if sys.argv[1:] else os.environ.get("COTERIE_DATA", ""))
    if not list(folder.glob("*.npz")):
        print(
            "No sets (NAME.npz with X and y): name their folder, or set COTERIE_DATA."
        )
        return 2
    most = false_alarms(folder)
    found_units()
    return int(most > MOST_FALSE)


if __name__ == "__main__":
    sys.exit(main())
