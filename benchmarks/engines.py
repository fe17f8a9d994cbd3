"""Steps of many rows on Dask's workers beside the threads of one process.

    python -m benchmarks.engines [--rows N ...] [--runs N] [--workers N]

empty     ms that a step of ten empty tasks takes on the cluster, beside as many here.
ratio     wall time of one pass of k-means (10 centroids, 16 features) over rows of a blob:
          Dask's workers beside threads, both here, for each number of rows; the median of
          runs that take turns. Below 1 the cluster is faster. On one machine it can save
          nothing but what threads wait for each other: what it costs is to be seen here,
          what more machines save is the work divided by their processors.
seconds   processor time of the kernels of a pass, which decides where it runs
          (`WORTH_SENDING` of analyst_service/engines/dask_engine.py).
sent      bytes that travel to the workers for each task, and how many bytes of rows the
          task works on: rows do not travel.
hashing   ms for each MB of rows that an analyst with an object store hashes once, so that
          workers may fetch some of a blob and know that it is right.

Ends with 1 where bits differ or a task is larger than 100 kB.
"""

from __future__ import annotations

import argparse
import os
import pickle  # to count what Dask sends
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from analyst_service.blobs.files import FileBlobStore
from analyst_service.blobs.store_factory import BlobPlace
from analyst_service.engines import dask_engine
from analyst_service.engines.cluster import Cluster, connect
from analyst_service.engines.dask_engine import DaskEngine
from analyst_service.engines.references import MappedBlobs
from analyst_service.engines.tasks import BlockTask
from clustering_protocols.algorithms.lloyd import ScaledRows
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import Engine, LocalEngine
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import FloatArray

WIDTH, N_CLUSTERS, LARGEST_TASK = 16, 10, 100_000


def nothing(block: int) -> int:
    """Do nothing."""
    return block


class Given(NamedTuple):
    """Rows in a blob, and the engines that work on them."""

    X: FloatArray
    local: Engine
    dask: Engine


class Counted:
    """A cluster that counts the bytes of what is handed out."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.sizes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        """Return what the cluster has."""
        return getattr(self._cluster, name)

    def submit(self, task: BlockTask) -> Any:
        """Hand a task out."""
        self.sizes.append(len(pickle.dumps(task)))
        return self._cluster.submit(task)


def in_turn(runs: int, *works: Callable[[], object]) -> list[float]:
    """Return the median of wall times, in seconds, of works that take turns."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for work, times in zip(works, taken, strict=True):
            begun = time.perf_counter()
            work()
            times.append(time.perf_counter() - begun)
    return [median(times) for times in taken]


def given(folder: Path, n: int, cluster: Any) -> Given:
    """Return rows in a blob of the store that the workers read."""
    X = np.random.default_rng(0).normal(size=(n, WIDTH))
    files = FileBlobStore(folder / "blobs")
    digest = files.put(codec.encode({}, {"x": X}))
    blob = files.map(digest)
    mapped = MappedBlobs({digest: blob}, is_checked=False)
    local = LocalEngine(os.cpu_count() or 1)
    engine = DaskEngine(local, lambda: cluster, mapped)
    return Given(codec.decode(blob)[1]["x"], local, engine)


def passes(rows: Given, runs: int) -> tuple[float, float, float, bool]:
    """Return wall times on threads and on Dask, processor time, and if bits are equal."""
    V = rows.X[:N_CLUSTERS].copy()
    given_rows = row_blocks.of(rows.X)
    here, there = (
        ScaledRows.of(given_rows, engine, 10**6) for engine in (rows.local, rows.dask)
    )
    found = [each.sums(V - each.units.offset) for each in (here, there)]
    same = all(
        np.array_equal(a, b) for a, b in zip(found[0][:2], found[1][:2], strict=True)
    )
    cpu = time.process_time()
    here.sums(V)
    cpu = time.process_time() - cpu
    local, dask = in_turn(runs, partial(here.sums, V), partial(there.sums, V))
    return local, dask, cpu, same and found[0][2] == found[1][2]


def measured(arguments: argparse.Namespace, folder: Path) -> Iterator[bool]:
    """Print the figures; yield whether each is as it should be."""
    cluster: Any = Counted(connect("", 300.0, BlobPlace(folder=folder / "blobs")))
    dask_engine.WORTH_SENDING = 0.0  # whatever it costs
    local = LocalEngine(os.cpu_count() or 1)
    empty = DaskEngine(local, lambda: cluster, MappedBlobs({}, is_checked=False))

    def ten(engine: Engine) -> None:
        for _ in range(10):
            list(engine.map(nothing, [0]))

    def at_once() -> None:
        for sent in [cluster.submit(_empty()) for _ in range(10)]:
            cluster.result(sent)

    ten(empty)
    apart, once, here = in_turn(
        arguments.runs * 3, partial(ten, empty), at_once, partial(ten, local)
    )
    print(
        f"empty    ten tasks at once {1e3 * once:.0f} ms, one after the other "
        f"{1e3 * apart:.0f} ms; here {1e3 * here:.1f} ms"
    )
    for n in arguments.rows:
        rows = given(folder, n, cluster)
        cluster.sizes.clear()
        on_threads, on_dask, cpu, same = passes(rows, arguments.runs)
        size = max(cluster.sizes)
        worked = rows.X.nbytes * (arguments.runs + 3) // max(len(cluster.sizes), 1)
        print(
            f"{n:>10,} rows  ratio {on_dask / on_threads:5.2f}  (threads "
            f"{on_threads:.2f} s, processor {cpu:.2f} s)  sent {size / 1e3:.1f} kB at most "
            f"a task, of {worked / 1e6:.1f} MB rows  bits {'same' if same else 'DIFFER'}",
            flush=True,
        )
        yield same and size < LARGEST_TASK
    begun = time.process_time()
    sha256(rows.X.data).hexdigest()
    taken = time.process_time() - begun
    print(f"hashing  {1e3 * taken / (rows.X.nbytes / 1e6):.2f} ms for each MB")
    cluster.close()


def _empty() -> BlockTask:
    from analyst_service.engines.tasks import versions

    return BlockTask(versions=versions(), kernel=nothing, blocks=[0])


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
    parser.add_argument("--rows", type=int, nargs="+", default=sizes)
    parser.add_argument("--runs", type=int, default=5)
    with tempfile.TemporaryDirectory() as name:
        is_well = all([*measured(parser.parse_args(), Path(name))])
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
