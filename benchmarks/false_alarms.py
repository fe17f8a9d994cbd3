"""Warnings on tables without a fault, and on the same tables with codes planted in them.

    python -m benchmarks.false_alarms [--sets wine heart] [--share 0.05]

Clean tables are the evidence sets and the messy tables of the tests, whose faults are
of other kinds. A warning on a value of a clean table is a false alarm; so is a title, a
total or a second header. In each column of more than ten values a code is planted, one
column at a time, in 5 of 100 rows; those that stand inside the column's range are no
code there. Ends with 1 at more than one false alarm in 100 columns, or where fewer than
90 of 100 planted codes are told.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import datasets
from party_sdk.tables import How, examine, lone_values

MESSY = Path(__file__).resolve().parents[1] / "tests" / "messy"
CODES = (-9.0, -99.0, 99.0, 999.0)
SETS = (*sorted(datasets.BUNDLED), *datasets.SOURCES)
_MOST_FALSE = 0.01
_LEAST_FOUND = 0.9
_MOST_ROWS = 5_000
_MOST_COLUMNS = 200
_FAULTS = ("apart from", "stand apart", "as a title", "row of totals", "repeats the")


def main() -> None:
    """Print both counts, set by set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--share", type=float, default=0.05)
    given = parser.parse_args()
    columns = false = planted = found = 0
    print(f"{'set':16}{'columns':>8}{'false':>7}{'coded':>7}{'planted':>9}{'told':>7}")
    for name in given.sets:
        try:
            X = _small(datasets.load(name)[0])
        except datasets.MissingDataError as missing:
            print(f"{name:16}{missing}")
            continue
        alarms, coded = _alarms(X)
        outcomes = list(_planted(X, given.share))
        columns, false = columns + X.shape[1], false + alarms
        planted, found = planted + len(outcomes), found + sum(outcomes)
        print(
            f"{name:16}{X.shape[1]:8}{alarms:7}{coded:7}{len(outcomes):9}{sum(outcomes):7}"
        )
    messy = _messy()
    print(f"false alarms: {false} in {columns} columns, {messy} in the messy tables")
    print(f"planted codes told: {found} of {planted}")
    too_many = false > _MOST_FALSE * columns or messy
    sys.exit(bool(too_many or found < _LEAST_FOUND * planted))


def _small(X: NDArray[np.float64]) -> NDArray[np.float64]:
    step = max(1, len(X) // _MOST_ROWS)
    return X[::step, :_MOST_COLUMNS]


def _alarms(X: NDArray[np.float64]) -> tuple[int, int]:
    """Return the number of false alarms of a table, and whether its codes are told."""
    report, _ = examine(pd.DataFrame(X).add_prefix("x"), How(allow=("running-number",)))
    said = [*report.warnings, *(each.what for each in report.problems)]
    return _n_faults(said), sum("few values" in text for text in said)


def _n_faults(said: list[str]) -> int:
    return sum(any(fault in text for fault in _FAULTS) for text in said)


def _planted(X: NDArray[np.float64], share: float) -> Iterator[bool]:
    """Yield whether each planted code is told, where it is one."""
    rng = np.random.default_rng(0)
    for x in X.T:
        if len(np.unique(x)) <= 10:
            continue
        for code in CODES:
            if x.min() <= code <= x.max():
                continue
            coded = x.copy()
            coded[rng.random(len(x)) < share] = code
            yield [each.value for each in lone_values(coded)] == [code]


def _messy() -> int:
    """Return the number of alarms on the messy tables, but for the total that is one."""
    alarms = 0
    for path in sorted(MESSY.iterdir()):
        named = () if path.name in {"x_noid.csv", "y_noid.csv"} else ("patient",)
        report, _ = examine(path, How(id_column=named))
        said = [*report.warnings, *(each.what for each in report.problems)]
        told = _n_faults(said) - (path.name == "totalrow.csv")
        if told:
            print(f"{path.name}: {said}")
        alarms += told
    return alarms


if __name__ == "__main__":
    main()
