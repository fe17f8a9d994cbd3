"""Reading a text file through a mapping, against reading the same file without one.

    python -m benchmarks.mapping [--rows 10000000] [--columns 20] [--parquet]

Of the columns a third holds words that are recoded, a third numbers in another unit, and
a third has other names alone; every third number column has a code of missing values.
Without a mapping the dictionary has the table's own names and words. Both run in
processes of their own, in turns; times are those of processors, which other work on the
machine changes less. Ends with 1 above the goal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

GOAL_RATIO = 1.2
_PIECE = 100_000
_WORDS = ("w", "W", "weiblich", "m", "M", "männlich")

_PROGRAM = """
import json, resource, sys, time
from clustering_protocols.terms.schema import Field, Schema
from party_sdk.tables import How, TableMapping, read_table
path, rows, columns, mapped = sys.argv[1], *map(int, sys.argv[2:])
words = ["w", "W", "weiblich", "m", "M", "männlich"]
fields, said = [], {}
for i in range(columns):
    kind, own = i % 3, f"spalte{i}"
    name = f"x{i}" if mapped else own
    if kind:
        fields.append(Field(name=name))
        said[name] = {"from": own}
        if kind == 2:
            said[name] |= {"factor": 10.929, "offset": -23.5, "missing": ["-999"]}
    else:
        levels = ("female", "male") if mapped else tuple(words)
        fields.append(Field(name=name, type="string", categories=levels))
        sexes = {w: "female" if w[0] in "wW" else "male" for w in words}
        said[name] = {"from": own, "levels": sexes}
mapping = TableMapping.model_validate({"columns": said}) if mapped else None
how = How(id_column="id", schema=Schema(fields=fields), mapping=mapping)
def used():
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)
begin = time.perf_counter(), used()
assert read_table(path, how).n_rows == rows
print(json.dumps([time.perf_counter() - begin[0], used() - begin[1]]))
"""


def main() -> None:
    """Print times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parquet", action="store_true")
    options = parser.parse_args()
    n_rows, n_columns = options.rows, options.columns
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "rows.csv", n_rows, n_columns)
        if options.parquet:
            path = to_parquet(path)
        size = (str(path), str(n_rows), str(n_columns))
        runs = [(run(*size, "0"), run(*size, "1")) for _ in range(options.runs)]
        print(
            f"{n_rows:,} rows × {n_columns} columns, {path.suffix}, "
            f"{path.stat().st_size / 2**20:.0f} MiB, {options.runs} runs"
        )
    plain, mapped = (median(pair[side][1] for pair in runs) for side in (0, 1))
    ratio = median(pair[1][1] / pair[0][1] for pair in runs)
    print(f"without a mapping {plain:.2f} s of processors")
    print(f"with a mapping    {mapped:.2f} s")
    print(f"ratio             {ratio:.2f}  (goal: at most {GOAL_RATIO})")
    sys.exit(int(ratio > GOAL_RATIO))


def write(path: Path, n_rows: int, n_columns: int) -> Path:
    """Write a table of ids, words and numbers with three digits behind the point."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        names = [f"spalte{i}" for i in range(n_columns)]
        file.write(",".join(["id", *names]) + "\n")
        for begin in range(0, n_rows, _PIECE):
            shape = (min(_PIECE, n_rows - begin), n_columns)
            cells = np.round(rng.normal(scale=100, size=shape), 3).astype("U10")
            cells[:, ::3] = rng.choice(_WORDS, cells[:, ::3].shape)
            coded = rng.random(shape) < 0.02
            coded[:, [i for i in range(n_columns) if i % 3 < 2]] = False
            cells[coded] = "-999"
            rows = enumerate(cells.tolist(), begin)
            file.writelines(f"P{i:09d},{','.join(x)}\n" for i, x in rows)
    return path


def to_parquet(path: Path) -> Path:
    """Return the same table as a file of Parquet."""
    from pyarrow import csv, parquet

    made = path.with_suffix(".parquet")
    parquet.write_table(csv.read_csv(path), made)
    return made


def run(path: str, n_rows: str, n_columns: str, mapped: str) -> tuple[float, float]:
    """Return seconds, and seconds of processors, of one reading."""
    words = [sys.executable, "-c", _PROGRAM, path, n_rows, n_columns, mapped]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    spent, used = json.loads(done.stdout)
    return spent, used


if __name__ == "__main__":
    main()
