"""Reading and preparing a text file, against DuckDB's own scan of the same file.

    python -m benchmarks.tables [--rows 10000000] [--columns 20] [--parquet]

The scan adds up every column, with everything found out by DuckDB. Reading finds the
dialect, parses, watches for what a party should not send, and writes rows to a spool and
ids to Arrow. Preparing looks which rows lack what they need, and makes the columns that
are clustered, batch by batch. Every other column has gaps, 2 in 100. Both run in
processes of their own, in turns; times are those of processors, which other work on the
machine changes less. Ends with 1 above a goal.

With --parquet: a Parquet file of these rows, read by a process of its own as
`open_table` does, against the same reading in one process. What the process takes to
start is measured on a file of one row, and subtracted.
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

GOAL_RATIO = 2.0
GOAL_BYTES = 1 << 30
GOAL_APART = 1.1
_PIECE = 100_000
_GAPS = 0.02

_SCAN = """
import duckdb
sums = ", ".join(f"sum(x{i})" for i in range(columns))
duckdb.execute("SET threads = 2; SET enable_progress_bar = false")
duckdb.execute(f"SELECT count(id), {sums} FROM read_csv(?)", [path]).fetchall()
"""
_READ = """
from clustering_protocols.terms.preparation import ColumnPlan, PreparedRows, whole_rows
from clustering_protocols.terms.preparation import build_imputation
from clustering_protocols.terms.schema import Field, Schema
from party_sdk.tables import open_table
import numpy as np
schema = Schema(fields=tuple(Field(name=f"x{i}") for i in range(columns)))
plan = ColumnPlan(schema, build_imputation(schema, "mean"))
table = open_table(path, id_column="id", schema=schema, preparation=plan.preparation)
assert len(table.ids) == table.n_rows == rows
assert whole_rows(table, plan) is None
prepared = PreparedRows(table, plan, np.zeros(columns))
assert sum(len(batch) for batch in prepared.batches()) == rows
"""
_HERE = """
from party_sdk.tables import open_table, unpacking
unpacking.sys = type("sys", (), {"platform": "win32"})  # where this process reads itself
assert open_table(path, id_column="id").n_rows == rows
"""
_APART = """
from party_sdk.tables import open_table
assert open_table(path, id_column="id").n_rows == rows
"""
_PROGRAM = """
import json, resource, sys, time
path, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def used():
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)
begin = time.perf_counter(), used()
{work}
spent = time.perf_counter() - begin[0], used() - begin[1]
most = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([*spent, most]))
"""


def main() -> None:
    """Print times, their ratio and the most memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parquet", action="store_true")
    options = parser.parse_args()
    if options.parquet:
        sys.exit(apart(options.rows, options.columns, options.runs))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write(path, options.rows, options.columns)
        size = (str(path), str(options.rows), str(options.columns))
        runs = [(run(_SCAN, *size), run(_READ, *size)) for _ in range(options.runs)]
        print(
            f"{options.rows:,} rows × {options.columns} columns, "
            f"{path.stat().st_size / 2**20:.0f} MiB, {options.runs} runs"
        )
    sys.exit(report(runs))


def apart(n_rows: int, n_columns: int, n_runs: int) -> int:
    """Print what a process of its own costs beside its start; return 1 above the goal."""
    import pyarrow as pa
    from pyarrow import parquet

    spent = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        for n in (1, n_rows):
            rng = np.random.default_rng(0)
            cells = {f"x{i}": rng.normal(size=n) for i in range(n_columns)}
            ids = [f"P{i:09d}" for i in range(n)]
            parquet.write_table(pa.table({"id": ids, **cells}), path)
            size = (path, str(n), str(n_columns))
            runs = [(run(_HERE, *size), run(_APART, *size)) for _ in range(n_runs)]
            spent[n] = [median(pair[side][1] for pair in runs) for side in (0, 1)]
    start = spent[1][1] - spent[1][0]
    ratio = (spent[n_rows][1] - start) / spent[n_rows][0]
    print(f"{n_rows:,} rows × {n_columns} columns of Parquet, {n_runs} runs")
    print(f"in one process {spent[n_rows][0]:.2f} s of processors")
    print(f"apart          {spent[n_rows][1]:.2f} s, of which the start {start:.2f} s")
    print(f"ratio          {ratio:.2f}  (goal: at most {GOAL_APART})")
    return int(ratio > GOAL_APART)


def write(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a table of ids and numbers with three digits behind the point."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(",".join(["id", *(f"x{i}" for i in range(n_columns))]) + "\n")
        for begin in range(0, n_rows, _PIECE):
            X = rng.normal(scale=100, size=(min(_PIECE, n_rows - begin), n_columns))
            cells = np.round(X, 3).astype("U")
            gaps = rng.random(X.shape) < _GAPS
            gaps[:, ::2] = False
            cells[gaps] = ""
            rows = enumerate(cells.tolist(), begin)
            file.writelines(f"P{i:09d},{','.join(x)}\n" for i, x in rows)


def run(work: str, *size: str) -> tuple[float, float, int]:
    """Return seconds on the clock and of processors, and most memory, of a process."""
    words = [sys.executable, "-c", _PROGRAM.format(work=work), *size]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    elapsed, used, most = json.loads(said)
    return elapsed, used, most


def report(
    runs: list[tuple[tuple[float, float, int], tuple[float, float, int]]],
) -> int:
    """Print the figures beside their goals; return 1 if one is missed."""
    for name, side in (("DuckDB's scan", 0), ("prepared", 1)):
        elapsed = median(pair[side][0] for pair in runs)
        used = median(pair[side][1] for pair in runs)
        print(f"{name:13}  {used:.2f} s of processors, {elapsed:.2f} s on the clock")
    ratio = median(read[1] / scan[1] for scan, read in runs)
    most = max(read[2] for _, read in runs)
    print(f"ratio          {ratio:.2f}  (goal: at most {GOAL_RATIO})")
    print(
        f"memory         {most / 2**20:.0f} MiB  (goal: at most {GOAL_BYTES >> 20} MiB)"
    )
    return int(ratio > GOAL_RATIO or most > GOAL_BYTES)


if __name__ == "__main__":
    main()
