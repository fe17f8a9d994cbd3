"""Whole sessions beside pooled k-means and those of an older checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from sklearn.cluster import KMeans

from benchmarks.speed.figures import Figure, Run
from benchmarks.speed.session import N_CLUSTERS, N_UPDATES, draw_rows

Costs = Mapping[str, float]
ROOT: Final = Path(__file__).parents[2]
TURNS: Final = 3


def figures(run: Run) -> Iterator[Figure]:
    """Yield costs of sessions of `llf` and `dc`."""
    yield from _beside_pooled(run)
    if run.base:
        yield from _beside_base(run.base, small=run.small)


def _beside_pooled(run: Run) -> Iterator[Figure]:
    """Yield figures of `llf` sessions, each beside scikit-learn from the same start."""
    n_rows, n_columns = (3000, 4) if run.small else (1_000_000, 16)
    X, start = draw_rows(n_rows, n_columns)
    pooled = KMeans(N_CLUSTERS, init=start, n_init=1, max_iter=N_UPDATES, tol=0)
    ratios, sessions = [], []
    for _ in range(1 if run.small else TURNS):
        sessions.append(_session(ROOT, "over-http", "llf", n_rows, n_columns))
        begin = time.perf_counter()
        pooled.fit(X)
        ratios.append(sessions[-1]["wall"] / (time.perf_counter() - begin))
    size = f"{n_rows:,} × {n_columns}"
    yield Figure(f"llf, {size}, ten cold parties ÷ pooled KMeans", median(ratios), 6)
    for name, key, factor, goal in (
        ("  party beside its rows, ms of CPU time a round", "beside rows", 1000, 5),
        ("  analyst, ms of CPU time an answer", "answer", 1000, 6),
        ("  party's memory, MiB", "memory", 1, 180),
    ):
        least = min(factor * session[key] for session in sessions)
        yield Figure(name, least, goal)


def _beside_base(base: Path, *, small: bool) -> Iterator[Figure]:
    for way, name, n_rows, n_columns, goals in (
        ("over-http", "llf", 100_000, 10, {"cpu": None, "memory": None}),
        ("over-http", "dc", 100_000, 10, {"cpu": 0.45, "memory": None}),
        ("simulated", "dc", 10_000, 1000, {"cpu": 0.15, "bytes": 0.2}),
    ):
        size = (1000, 20) if small else (n_rows, n_columns)
        pairs = [
            [_session(root, way, name, *size) for root in (ROOT, base)]
            for _ in range(1 if small else TURNS)
        ]
        for key, goal in goals.items():
            ratio = median(ours[key] / theirs[key] for ours, theirs in pairs)
            shown = f"{name}, {size[0]:,} × {size[1]}, {way}: {key} ÷ base"
            yield Figure(shown, ratio, goal)


def _session(root: Path, way: str, protocol: str, *size: int) -> Costs:
    """Return what a session costs with the packages of a checkout.

    It runs in this checkout's `benchmarks`, whichever the checkout of the packages.
    """
    python = sys.executable if root == ROOT else str(root / ".venv/bin/python")
    command = [python, "-m", "benchmarks.speed.session", way, protocol]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "benchmarks").symlink_to(ROOT / "benchmarks")
        done = subprocess.run(
            [*command, *map(str, size)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": folder},
            stdout=subprocess.PIPE,
            check=True,
        )
    costs: Costs = json.loads(done.stdout.splitlines()[-1])
    return costs
