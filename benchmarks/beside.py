"""K-means of split rows beside NVFlare and Flower, on the same rows.

    python -m benchmarks.beside [--sets iris pendigits] [--rounds N] [--environments FOLDER]

Rows, standardised over all of them, are dealt out to three parties. Printed: inertia of
all rows around the centroids that come out, over that of scikit-learn's pooled k-means
(ten starts); seconds; bytes that a party sends. Ours is `llf`: as a simulation, and with
an analyst over HTTP. NVFlare runs its own k-means job in its simulator, Flower its
``FedAvg`` over one iteration of k-means at each client; both for N rounds. They are
installed by pip into environments of their own (in FOLDER, else a temporary one); what
cannot be installed is said.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.datasets import load
from clustering_protocols import simulation
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.terms import Layout
from coterie import local_session

PARTIES = 3
HERE = Path(__file__).parent
REQUIRED = {
    "nvflare": ("nvflare", "scikit-learn"),
    "flower": ("flwr[simulation]", "scikit-learn"),
}
DISTRIBUTIONS = {"nvflare": "nvflare", "flower": "flwr"}
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "FLWR_TELEMETRY_ENABLED": "0"}
_MOST_SECONDS = 1200


class Line(NamedTuple):
    """What one system made of one set."""

    system: str
    inertia: float
    seconds: float
    sent: str


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["iris", "pendigits"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--environments", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.environments or Path(temporary)
        pythons = {name: environment(folder / name, name) for name in REQUIRED}
        for name in given.sets:
            beside(name, pythons, given.rounds)


def environment(folder: Path, name: str) -> Path | str:
    """Return the interpreter of an environment with a system, or why there is none."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    command: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        *REQUIRED[name],
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else python


def version(python: Path, name: str) -> str:
    """Return the version of what was installed."""
    asked = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run(
        [python, "-c", asked], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def beside(name: str, pythons: dict[str, Path | str], rounds: int) -> None:
    """Print one line for each system on one set."""
    X, classes = load(name)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    k = len(np.unique(classes))
    pooled = KMeans(k, n_init=10, random_state=0).fit(X).inertia_
    print(f"{name} ({len(X)} × {X.shape[1]}), k = {k}, {PARTIES} parties", flush=True)
    parts = simulation.split(X, Layout.lattice(PARTIES), 0)
    for line in chain(ours(X, parts, k), theirs(X, parts, k, pythons, rounds)):
        if isinstance(line, str):
            print(f"  {line}", flush=True)
            continue
        print(
            f"  {line.system:34} inertia {line.inertia / pooled:.4f} × pooled, "
            f"{line.seconds:6.1f} s, sent {line.sent}",
            flush=True,
        )


def inertia(X: FloatArray, centroids: FloatArray) -> float:
    """Return the sum of squared distances to the nearest centroid."""
    apart = (np.square(X).sum(axis=1)[:, None] - 2 * X @ centroids.T) + np.square(
        centroids
    ).sum(axis=1)
    return float(np.maximum(apart.min(axis=1), 0).sum())


def around(X: FloatArray, parts: simulation.Split, labels: Sequence[IntArray]) -> float:
    """Return the inertia around the means of the parties' labels."""
    found = np.empty(len(X), dtype=np.int64)
    for rows, own in zip(parts.rows, labels, strict=True):
        found[rows] = own
    means = [X[found == label].mean(axis=0) for label in np.unique(found)]
    return inertia(X, np.array(means))


def ours(X: FloatArray, parts: simulation.Split, k: int) -> Iterator[Line]:
    """Yield `llf` as a simulation, and over HTTP."""
    for n_init in (1, 5):
        params = LosslessFederated(n_clusters=k, n_init=n_init)
        begin = time.perf_counter()
        ended = simulation.run(params, parts.layout, parts.data, 0)
        took = time.perf_counter() - begin
        labels = [ended.outcomes[slot].labels for slot in parts.layout.names]
        most = max(ended.costs[slot].sent_bytes for slot in parts.layout.names)
        system = f"llf, {n_init} start{'s' * (n_init > 1)}, simulated"
        yield Line(system, around(X, parts, labels), took, f"{most:,} bytes")
    params = LosslessFederated(n_clusters=k)
    begin = time.perf_counter()
    with local_session(params, parts.layout, seed=0) as session:
        labels = [result.labels for result in session.run(parts.data)]
    took = time.perf_counter() - begin
    yield Line("llf, 1 start, over HTTP", around(X, parts, labels), took, "the same")


def theirs(
    X: FloatArray,
    parts: simulation.Split,
    k: int,
    pythons: dict[str, Path | str],
    rounds: int,
) -> Iterator[Line | str]:
    """Yield the others, or why there is no figure."""
    for name, python in pythons.items():
        if isinstance(python, str):
            yield f"{name}: not installed. {python}"
            continue
        installed = version(python, DISTRIBUTIONS[name])
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            for number, rows in enumerate(parts.rows, start=1):
                np.save(folder / f"site-{number}.npy", X[rows])
            script = str(HERE / f"beside_{name}.py")
            said = ran([python, script, str(folder), str(k), str(rounds)], folder)
            centroids = sorted(folder.glob("*centres.npy"))
            if "seconds " not in said or not centroids:
                yield f"{name} {installed}: failed. {said[-300:]}"
                continue
            found = np.load(centroids[0])
            seconds = float(said.rpartition("seconds ")[2].split()[0])
        # a pass of centroids and, for NVFlare, counts; nothing else of theirs is counted
        words = found.size + (k if name == "nvflare" else 0)
        sent = f"{8 * words * rounds:,} bytes of arrays alone"
        system = f"{name} {installed}, {rounds} rounds"
        yield Line(system, inertia(X, found), seconds, sent)


def ran(command: Sequence[str | Path], folder: Path) -> str:
    """Return what a program printed; what went wrong, where it failed."""
    try:
        done = subprocess.run(
            command,
            env=os.environ | QUIET,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"It took more than {_MOST_SECONDS} s."
    return done.stderr.strip() if done.returncode else done.stdout


if __name__ == "__main__":
    sys.exit(main())
