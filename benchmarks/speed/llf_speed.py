"""Speed of `llf` and of masked sums, as ratios to named primitives of one run.

    python -m benchmarks.speed.llf_speed [--session]

passes   one c-means pass over 1,000,000 × 16 rows, k = 10, against one matrix product
         X V'; one fuzzy pass against the products X V' and U' X; and scikit-fuzzy's pass
         against the same; the passes that close a session against a c-means pass. One
         BLAS thread, processor time.
masking  10,000,000 ring elements with one pairwise mask against `words.copy()`, and
         against a copy into memory that was touched before.
wire     bytes of one party and round, up and down, beside (k·F + k) · 8.
session  --session: a whole blind run over HTTP, ten party processes, 1,000,000 × 16
         rows, 20 updates, SQLite, against scikit-learn's KMeans on the pooled rows from
         the same start with as many iterations; and where the time of a round goes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from skfuzzy.cluster._cmeans import _cmeans0
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

from analyst_service.clock import SystemClock
from benchmarks.speed.analyst_process import AnalystProcess
from benchmarks.speed.session_split import idle_seconds, shares, split
from benchmarks.speed.timing import cpu_seconds, ratio, seconds
from clustering_protocols import simulation
from clustering_protocols.algorithms.row_kernels import bring_nearer
from clustering_protocols.engine import packets
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.llf import LosslessFederated, kernels
from clustering_protocols.quality.block_sums import add_by_label, of_block
from clustering_protocols.secrecy.masks import add_stream
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout
from party_sdk.coordinator.coordinator import Coordinator

N_ROWS, N_FEATURES, N_CLUSTERS = 1_000_000, 16, 10
N_PARTIES, N_UPDATES = 10, 20


def passes() -> None:
    """Print the ratios of one party's passes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    V = rng.normal(size=(N_CLUSTERS, N_FEATURES))
    U = rng.random((N_ROWS, N_CLUSTERS))
    D, S = np.empty((N_ROWS, N_CLUSTERS)), np.empty((N_CLUSTERS, N_FEATURES))
    fixed = (np.zeros(N_FEATURES), np.ones(N_FEATURES), V)
    units = np.full(N_FEATURES, 2.0**30)
    sums, weights = np.zeros_like(V), np.zeros(N_CLUSTERS)
    labels = np.empty(N_ROWS, np.int64)

    def product() -> None:
        np.dot(X, V.T, out=D)

    def both_products() -> None:
        np.dot(X, V.T, out=D)
        np.dot(U.T, X, out=S)

    def cmeans() -> None:
        kernels.cmeans_sums(X, *fixed, units, sums, weights)

    def fuzzy() -> None:
        kernels.fuzzy_sums(X, *fixed, 2.0, units, 2.0**30, sums, weights)

    def skfuzzy() -> None:
        _cmeans0(X.T, U.T.copy(), N_CLUSTERS, 2.0, "euclidean")

    def closing() -> None:
        away = np.full(N_ROWS, np.inf)
        bring_nearer(X, *fixed, 0, labels, away, 0.0)
        add_by_label(X, *fixed[:2], labels, sums)
        of_block(X, fixed[:2], V, labels, np.bincount(labels, minlength=N_CLUSTERS))

    cmeans(), fuzzy(), closing()  # compiled now
    with threadpool_limits(1):
        found = ratio(cmeans, product, 7, cpu_seconds)
        print(f"c-means pass: {found:.2f} × one product X V' (goal 2)")
        found = ratio(fuzzy, both_products, 7, cpu_seconds)
        print(f"fuzzy pass: {found:.2f} × the products X V' and U' X (goal 2)")
        found = ratio(closing, cmeans, 7, cpu_seconds)
        print(f"labels and both closing sums: {found:.2f} × a c-means pass")
        found = ratio(skfuzzy, both_products, 1, cpu_seconds)
        print(f"  scikit-fuzzy's pass: {found:.1f} ×")


def masking() -> None:
    """Print the ratio of masking to copying."""
    words = np.arange(10_000_000, dtype=np.uint64)
    touched = np.ones_like(words)

    def masked() -> None:
        add_stream(words, KeyedStream(bytes(32)))

    found = ratio(masked, words.copy, 9, cpu_seconds)
    print(f"masking 10^7 elements for one other party: {found:.2f} × a copy (goal 3)")
    found = ratio(masked, lambda: np.copyto(touched, words), 9, cpu_seconds)
    print(f"  {found:.2f} × a copy into memory that was touched before")


def _is_update(sent: simulation.SentMessage) -> bool:
    return bool(packets.read(sent.payload).header.record["kind"] == "update")


def wire() -> None:
    """Print the bytes of one party and round."""
    X = np.random.default_rng(0).normal(size=(3000, N_FEATURES))
    parts = simulation.split(X, Layout.lattice(N_PARTIES, 1), 0)
    params = LosslessFederated(n_clusters=N_CLUSTERS, max_iter=5, tol=0)
    run = simulation.run(params, parts.layout, parts.data, 0)
    numbers = 8 * N_CLUSTERS * (N_FEATURES + 1)
    updates = [sent for sent in run.sent if _is_update(sent)]
    last_update = max(sent.round for sent in updates)
    for sender, way in (("r2c1", "up"), (simulation.ANALYST, "down")):
        sizes = [
            len(sent.payload)
            for sent in run.sent
            if sent.round == last_update
            and sent.sender == sender
            and "r2c1" in (sent.sender, sent.receiver)
        ]
        beyond = max(sizes) - 1.1 * numbers
        print(
            f"wire, {way}: {max(sizes)} bytes; 1.1 × (k·F + k) × 8 = {1.1 * numbers:.0f}"
        )
        print(f"  beyond that {beyond:.0f} (goal: under 1,024)")


# A whole session


def session() -> None:
    """Print the ratio of a session over HTTP to pooled k-means."""
    X, _ = make_blobs(N_ROWS, N_FEATURES, centers=30, cluster_std=4.0, random_state=0)
    bound = float(np.abs(X).max())
    start = X[np.random.default_rng(0).choice(N_ROWS, N_CLUSTERS, replace=False)]
    params = LosslessFederated(
        n_clusters=N_CLUSTERS,
        scaling="none",
        init="given",
        initial_centroids=tuple(tuple(map(float, row)) for row in start),
        max_iter=N_UPDATES,
        tol=0,
    )
    pooled = KMeans(N_CLUSTERS, init=start, n_init=1, max_iter=N_UPDATES, tol=0)
    with tempfile.TemporaryDirectory() as folder:
        took, rounds, parts, waited, worked = _federated(Path(folder), X, params, bound)
    reference = median(seconds(lambda: pooled.fit(X)) for _ in range(3))
    print(
        f"session, {N_PARTIES} party processes, {rounds} rounds: {took / reference:.1f} × "
        f"pooled KMeans with {pooled.n_iter_} iterations (goal 6)"
    )
    print(f"  {took:.2f} s against {reference:.2f} s")
    print(f"  it waited for: {shares(waited)}")
    print(f"  processors worked on: {shares(worked)}")
    for name, each in parts.items():
        print(f"  {name}: {1000 * each:.1f} ms per round")
    overhead = (took - rounds * parts["party: rows"]) / (rounds * N_PARTIES)
    print(f"  overhead per party and round: {1000 * overhead:.1f} ms (aim 10)")


class Session(NamedTuple):
    """A session's seconds and rounds, seconds of a round by part, and where all went."""

    took: float
    rounds: int
    parts: dict[str, float]
    waited: dict[str, float]
    worked: dict[str, float]


def _federated(
    folder: Path, X: np.ndarray[Any, Any], params: LosslessFederated, bound: float
) -> Session:
    layout, clock = Layout.lattice(N_PARTIES, 1), SystemClock()
    for slot, rows in zip(layout.names, np.array_split(X, N_PARTIES), strict=True):
        named = {f"x{f}": rows[:, f] for f in range(N_FEATURES)}
        parquet.write_table(pa.table(named), folder / f"{slot}.parquet")
    (folder / "a").mkdir()
    with (
        AnalystProcess(folder / "a") as analyst,
        Coordinator(analyst.url, analyst.key, home=folder) as coordinator,
    ):
        said = [numbers([f"x{f}" for f in range(N_FEATURES)], -bound, bound)]
        session = coordinator.create_session("speed", params, layout, dictionary=said)
        invitations = session.invite()
        risks = json.dumps(session.status().risks)
        parties = [
            _party(folder, slot, invitations[slot], risks) for slot in layout.names
        ]
        for party in parties:
            _pipe(party.stdout).readline()  # imports are done, rows are read
        used, idle = analyst.processor_seconds(), idle_seconds()
        begin = clock.now()
        for party in parties:
            _say(party, "go")
        reports = [json.loads(party.communicate()[0]) for party in parties]
        end = clock.now()
        rounds = session.status().round
        served, stepped = (
            now - before
            for now, before in zip(analyst.processor_seconds(), used, strict=True)
        )
        waited = split(session.audit().entries(), begin, end)
        rows, beside = (
            sum(report[name] for report in reports)
            for name in ("processor: rows", "processor: beside its rows")
        )
        worked = {
            "parties' rows": rows,
            "parties beside them": beside,
            "joining": sum(report["processor: joining"] for report in reports),
            "the analyst": served,
            "its steps": stepped,
            "nothing": idle_seconds() - idle,
        }
    parts = {
        f"party: {name}": median(report[name] for report in reports) / rounds
        for name in reports[0]
    }
    parts["analyst: processor time of each party"] = served / rounds / N_PARTIES
    return Session((end - begin).total_seconds(), rounds, parts, waited, worked)


def _party(
    folder: Path, slot: str, invitation: str, risks: str
) -> subprocess.Popen[str]:
    party = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.speed.llf_party", str(folder), slot],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _say(party, invitation)
    _say(party, risks)
    return party


def _say(party: subprocess.Popen[str], line: str) -> None:
    stdin = _pipe(party.stdin)
    stdin.write(line + "\n")
    stdin.flush()


def _pipe(end: IO[str] | None) -> IO[str]:
    if end is None:
        raise ValueError("not a pipe")
    return end


def main() -> None:
    """Print all ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--session", action="store_true", help="The whole run too.")
    whole = parser.parse_args().session
    passes()
    masking()
    wire()
    if whole:
        session()


if __name__ == "__main__":
    main()
