"""How often a party is asked about a field that makes up the distance, though none does.

    python -m benchmarks.one_field_alarms [--sets A,B]

A party asks where one field has more than 4 / (F + 3) of the variance of its rows, as they
are compared. Tables are those of scikit-learn and of the folder that COTERIE_DATA names,
up to 2,000 rows and 100 columns. Each is compared in four ways:

standard   standard deviations of one, as `omnifc` and `dc` have them by default.
levels     the same, but up to three fields are cut into four levels each, as a category.
minmax     ranges of one, from the least value to the largest.
wide       ranges of one that are declared 1 to 10 times as wide, by chance: terms that
           do make fields the distance, for comparison.

A question is in vain unless the analyst reads the field: `read` counts the tables on which
the field has |r| of .95 or more with one direction in which rows vary. Last, `pqmds`: on
how many tables a party has codes of one field alone, whose columns are those of `levels`.
Ends with 1 where `standard` or `levels` asks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from benchmarks import datasets
from benchmarks.repeats import rows_of
from clustering_protocols.protocols.pqmds.subspaces import cut
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.dominance import ComparedColumns

SETS: Final = ("diabetes", *sorted(datasets.BUNDLED), *datasets.SOURCES)
MOST_ROWS, MOST_COLUMNS, N_CUT = 2_000, 100, 3
READ: Final = 0.95
_LEVEL: Final = 1 / np.sqrt(2)
"""The value of a level's column, as a preparation has it."""


class Table(NamedTuple):
    """Rows (n, m) as they are compared, and the field of each column."""

    rows: FloatArray
    fields: Sequence[str]


def ways(X: FloatArray) -> Iterator[tuple[str, Table]]:
    """Yield each way to compare the rows of a table."""
    rng = np.random.default_rng(0)
    names = [f"x{place}" for place in range(X.shape[1])]
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    ranges = np.ptp(X, axis=0)
    yield "standard", Table(standard, names)
    yield "levels", _with_levels(standard, names, rng)
    yield "minmax", Table(X / ranges, names)
    yield "wide", Table(X / (ranges * 10 ** rng.uniform(0, 1, len(ranges))), names)


def _with_levels(
    Z: FloatArray, names: Sequence[str], rng: np.random.Generator
) -> Table:
    """Return rows of which some fields are the indicators of four levels."""
    n_cut = min(N_CUT, Z.shape[1] - 1)
    cut = set(rng.choice(Z.shape[1], n_cut, replace=False).tolist())
    columns, fields = [], []
    for place, (name, values) in enumerate(zip(names, Z.T, strict=True)):
        made = [values]
        if place in cut:
            level = np.digitize(values, np.quantile(values, (0.25, 0.5, 0.9)))
            made = [_LEVEL * (level == each) for each in range(4)]
        columns += made
        fields += [name] * len(made)
    return Table(np.column_stack(columns), fields)


def compared(table: Table) -> ComparedColumns:
    """Return the rows as a party's check takes them, nobody else having columns."""
    covariance = np.atleast_2d(np.cov(table.rows, rowvar=False, bias=True))
    return ComparedColumns(
        fields=table.fields, covariance=covariance, others=np.empty(0)
    )


def read_of(found: ComparedColumns, name: str) -> float:
    """Return the largest |r| of a field with a direction in which rows vary."""
    places = [place for place, field in enumerate(found.fields) if field == name]
    values, directions = np.linalg.eigh(found.covariance)
    spread = np.sqrt(np.diag(found.covariance))[places]
    along = np.abs(directions * np.sqrt(np.maximum(values, 0)))[places]
    return float((along[spread > 0] / spread[spread > 0, None]).max(initial=0.0))


def has_codes_alone(fields: Sequence[str], sub_dim: int) -> bool:
    """Return whether a subspace of `pqmds` holds columns of one field alone."""
    return any(len(set(fields[cell])) == 1 for cell in cut(len(fields), sub_dim))


def main() -> int:
    """Print, for each way, how many tables are asked about, and of how many one reads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS))
    asked: dict[str, list[str]] = {}
    n_read, n_tables = dict.fromkeys(("standard", "levels", "minmax", "wide"), 0), 0
    n_alone = dict.fromkeys((2, 4, 8), 0)
    for name in parser.parse_args().sets.split(","):
        try:
            X = rows_of(name, MOST_ROWS)
        except datasets.MissingDataError as missing:
            print(f"{name}: not here. {missing}")
            continue
        if X.shape[1] > MOST_COLUMNS:
            continue
        n_tables += 1
        for sub_dim in n_alone:
            n_alone[sub_dim] += has_codes_alone(dict(ways(X))["levels"].fields, sub_dim)
        for way, table in ways(X):
            found = compared(table)
            field, share = found.largest
            if share > found.limit:
                r = read_of(found, field)
                n_read[way] += r >= READ
                said = (
                    f"{name} ({field}: {share:.0%} of {found.limit:.0%}, |r| {r:.2f})"
                )
                asked.setdefault(way, []).append(said)
    for way, count in n_read.items():
        names = asked.get(way, [])
        print(f"{way:9} asked for {len(names):2} of {n_tables} tables, read {count:2}")
        for each in names:
            print(f"          {each}")
    for sub_dim, count in n_alone.items():
        print(
            f"pqmds, levels, sub_dim {sub_dim}: asked for {count} of {n_tables} tables"
        )
    return int(bool(asked.get("standard") or asked.get("levels")))


if __name__ == "__main__":
    sys.exit(main())
