"""Coterie beside its peers: one table, the same start, each in an environment of its own.

Makes an environment for each tool (Python's ``venv``, and PyPI), draws the table, and runs
each tool's file of ``benchmarks/beside/tools`` in a network namespace of its own, so that
all that travels is counted. A tool that cannot be installed or fails is in the table with
the reason. Each row has seconds and CPU seconds of all processes that a tool starts, bytes
on their loopback network (fewer if processes share memory, as Ray's do), rounds, inertia
divided by that of pooled scikit-learn after as many updates from the same start, ARI with
its labels, and what the coordinator holds at the end.

Needs Linux, and a user who may make network namespaces; takes about ten minutes.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from benchmarks.papers.cells import Row
from clustering_protocols.numerics.scores import adjusted_rand

N_ROWS, N_COLUMNS, N_PARTIES, N_CLUSTERS, N_UPDATES = 6_000, 8, 3, 5, 10
ROOT: Final = Path(__file__).resolve().parents[2]
FILES: Final = Path(__file__).parent / "tools"
MOST_SECONDS: Final = 600
PRODUCT: Final = ("analyst_service", "clustering_protocols", "coterie", "party_sdk")


class Tool(NamedTuple):
    """A tool: its file and arguments, what pip installs, what its coordinator holds."""

    command: Sequence[str]
    packages: Sequence[str]
    holds: str


TOOLS: Final = {
    "Coterie `llf`, HTTP": Tool(
        ("coterie_http.py",),
        (),
        "final means and sizes; the parties' sums stay masked",
    ),
    "Flower": Tool(
        ("flower.py",),
        ("flwr[simulation]==1.42.0",),
        "each party's sums and counts of every round",
    ),
    "Flower SecAgg+": Tool(
        ("flower.py", "secagg"),
        ("flwr[simulation]==1.42.0",),
        "the total of sums and counts of every round",
    ),
    "NVFlare": Tool(
        ("nvflare_lloyd.py",),
        ("nvflare==2.9.0",),
        "each party's sums and counts of every round",
    ),
    "SPU, ABY3": Tool(
        ("spu_lloyd.py",),
        ("spu==0.9.5",),
        "final means alone, if no two of three computing parties collude",
    ),
    "fedxai-lib": Tool(
        ("fedxai.py",),
        (
            *("fedxai-lib==1.0.3", "fedlang-py==0.0.1", "--no-deps"),
            *("--", "numba", "pandas", "numpy", "scikit-learn"),
        ),
        "each party's sums and counts of every round",
    ),
    "diffprivlib": Tool(
        ("pooled.py", "private"),
        ("diffprivlib==0.6.6", "scikit-learn==1.5.2"),
        "all rows; what it publishes has ε = 1",
    ),
    "scikit-learn, pooled": Tool(("pooled.py",), (), "all rows"),
}


def draw(folder: Path) -> None:
    """Draw the table; write each party's rows, all rows, the start and the settings."""
    X, _ = make_blobs(
        N_ROWS, N_COLUMNS, centers=N_CLUSTERS, cluster_std=4.0, random_state=0
    )
    for number, rows in enumerate(np.array_split(X, N_PARTIES), start=1):
        np.save(folder / f"site-{number}.npy", rows)
    rng = np.random.default_rng(0)
    np.save(folder / "start.npy", X[rng.choice(len(X), N_CLUSTERS, replace=False)])
    np.save(folder / "all.npy", X)
    settings = {"parties": N_PARTIES, "updates": N_UPDATES}
    (folder / "settings.json").write_text(json.dumps(settings))


def make_environment(name: str, packages: Sequence[str], folder: Path) -> Path:
    """Return the Python of a tool's environment, which is made if it is missing."""
    if not packages:
        for package in PRODUCT:  # as pip does with what it installs
            compileall.compile_dir(ROOT / package, quiet=1)
        return Path(sys.executable)
    python = folder / name / "bin" / "python"
    if not (folder / name / "ready").exists():
        venv.create(folder / name, with_pip=True, clear=True)
        for group in " ".join(packages).split(" -- "):
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", *group.split()],
                check=True,
                capture_output=True,
                text=True,
            )
        (folder / name / "ready").touch()
    return python


def run(tool: Tool, python: Path, data: Path) -> Row:
    """Run a tool; return its costs, and how its centroids compare with pooled ones."""
    measured = data / "measured.json"
    for stale in (measured, data / "centroids.npy", data / "rounds"):
        stale.unlink(missing_ok=True)
    file, *arguments = tool.command
    command = [str(python), str(FILES / file), str(data), *arguments]
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    with (data / "output.txt").open("w") as output:
        subprocess.run(
            [
                *("unshare", "--map-root-user", "--net"),
                *(sys.executable, "-m", "benchmarks.beside.namespace"),
                *(str(measured), "--", *command),
            ],
            cwd=ROOT,
            env=os.environ | quiet,
            check=True,
            timeout=MOST_SECONDS,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    costs = json.loads(measured.read_text())
    V, X = np.load(data / "centroids.npy"), np.load(data / "all.npy")
    start = np.load(data / "start.npy")
    pooled = KMeans(N_CLUSTERS, init=start, n_init=1, max_iter=N_UPDATES, tol=0).fit(X)
    distances = cdist(X, V, "sqeuclidean")
    reference = cdist(X, pooled.cluster_centers_, "sqeuclidean")
    ratio = distances.min(axis=1).sum() / reference.min(axis=1).sum()
    ari = adjusted_rand(reference.argmin(axis=1), distances.argmin(axis=1))
    return {
        "seconds": f"{costs['seconds']:.1f}",
        "cpu": f"{costs['cpu']:.1f}",
        "bytes": str(costs["bytes"]),
        "rounds": (data / "rounds").read_text(),
        "ratio": f"{ratio:.4f}",
        "ari": f"{ari:.3f}",
    }


def measure() -> list[Row]:
    """Return a row for each tool, in order; environments are made in build/beside."""
    rows = []
    folder = ROOT / "build" / "beside"
    folder.mkdir(parents=True, exist_ok=True)
    dashes = dict.fromkeys(("seconds", "cpu", "bytes", "rounds", "ratio", "ari"), "–")
    with tempfile.TemporaryDirectory() as name_of_data:
        data = Path(name_of_data)
        draw(data)
        for name, tool in TOOLS.items():
            stem = tool.command[0].removesuffix(".py")
            row = {"peer": name, **dashes, "holds": tool.holds}
            try:
                python = make_environment(stem, tool.packages, folder)
            except subprocess.CalledProcessError as failed:
                row["holds"] = f"not installed: {_last_line(failed.stderr)}"
            else:
                try:
                    row |= run(tool, python, data)
                except (subprocess.SubprocessError, OSError):
                    last = _last_line((data / "output.txt").read_text())
                    row["holds"] = f"did not end: {last}"
            print(" | ".join(row.values()), flush=True)
            rows.append(row)
    return rows


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1].strip()[:120]
