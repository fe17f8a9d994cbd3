"""One step of `dc` over many rows: the analyst's memory beside the uploads' size.

    python -m benchmarks.large --rows N [--parties 4] [--columns 16] [--memory GiB]
        [--starts 1] [--updates 10] [--folder DIR] [--algorithm kmeans|spectral]
        [--engine local|dask] [--workers 2] [--worker-memory GiB] [--same-bits]

Parties hold N rows of ten groups together, each all columns. What a party would upload
is made in blocks, rows turned by a secret rotation that leaves one column out, and lies
in the blob store of an analyst, as an upload does. The step that follows runs in a
process of its own, as a driver's worker does. Printed are its seconds, the bytes of the
uploads and of the state with the labels, the digest of all labels, and the process's
memory, sampled: RssAnon (its own), VmRSS (with the mapped uploads as far as they are in
memory), and what it held before the step, with all imported. Under Dask the same of each
worker.

--memory   the process may have so much memory of its own (RLIMIT_DATA), or it fails.
--starts   of k-means, and --updates of each at most.
--engine   where kernels run: in the process, or on --workers of Dask, processes of one
           thread that may have --worker-memory of their own each (RLIMIT_DATA too, and
           Dask's --memory-limit).
--same-bits  takes the step under both engines, and compares all that it stores.

Ends with 1 where VmRSS grows by more than 1.3 × the uploads, labels are not those of the
groups that the rows were made from, or what is stored differs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from analyst_service.blobs import BlobStore
from analyst_service.blobs.store_factory import BlobPlace
from analyst_service.engines.engine_factory import EngineChoice
from analyst_service.jobs import worker
from benchmarks import dask_workers, held_memory
from benchmarks.dask_workers import Workers
from benchmarks.held_memory import Memory
from clustering_protocols import engine
from clustering_protocols.engine import packets
from clustering_protocols.engine.session_state import AnalystState, PendingResults
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.dc import DataCollaboration, messages
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

N_CLUSTERS, N_ANCHORS, GOAL, LEAST_AGREEMENT = 10, 500, 1.3, 0.8
_ROWS = 1 << 16
_COMPARED = 4  # blocks of each party whose labels are looked at
_PIECE = 1 << 24


class Made:
    """A party's rows, made anew in each pass; the first block stands for statistics."""

    ids = None

    def __init__(self, party: int, n_rows: int, middles: FloatArray) -> None:
        self.party, self.n_rows, self.middles = party, n_rows, middles
        self.columns = [f"x{i}" for i in range(middles.shape[1])]

    def blocks(self) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield rows and the numbers of their groups."""
        for first in range(0, self.n_rows, _ROWS):
            rng = np.random.default_rng([self.party, first])
            size = min(_ROWS, self.n_rows - first)
            groups = rng.integers(N_CLUSTERS, size=size)
            rows = rng.standard_normal((size, len(self.columns)))
            yield rows + self.middles[groups], groups

    def batches(self) -> Iterator[FloatArray]:
        """Yield the first rows alone: what comes before the uploads is not measured."""
        yield next(self.blocks())[0]


class Outcome(NamedTuple):
    """What became of the step: its seconds, memory before and at most, what it stored.

    ``workers``: the most memory of each of Dask's.
    """

    seconds: float
    before: Memory
    most: Memory
    workers: list[Memory]
    moved: worker.Followed


def main() -> int:
    """Print the figures; return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--parties", type=int, default=4)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--memory", type=float, default=0.0)
    parser.add_argument("--starts", type=int, default=1)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--algorithm", choices=("kmeans", "spectral"), default="kmeans")
    parser.add_argument("--engine", choices=("local", "dask"), default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worker-memory", type=float, default=0.0)
    parser.add_argument("--same-bits", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        place = BlobPlace(folder=Path(folder) / "blobs")
        sources = _sources(given.rows, given.parties, given.columns)
        job, size = _stored(place, sources, given)
        print(
            f"uploads {size / 2**20:,.0f} MiB of {given.parties} parties, "
            f"{given.rows:,} × {given.columns}",
            flush=True,
        )
        engines = ("local", "dask") if given.same_bits else (given.engine,)
        outcomes = [_run(each, job, given) for each in engines]
        missed = [_report(each, size, place.open(), sources) for each in outcomes]
    differ = len({tuple(each.moved.payloads) for each in outcomes}) > 1
    if given.same_bits:
        print(f"stored  {'DIFFERS' if differ else 'the same under both engines'}")
    return int(any(missed) or differ)


def _sources(n_rows: int, parties: int, columns: int) -> dict[str, Made]:
    middles = 3.0 * np.random.default_rng(0).normal(size=(N_CLUSTERS, columns))
    names = Layout.lattice(parties).names
    return {
        name: Made(number, n_rows // parties, middles)
        for number, name in enumerate(names)
    }


def _stored(
    place: BlobPlace, sources: Mapping[str, Made], given: argparse.Namespace
) -> tuple[worker.Job, int]:
    """Return the step behind the uploads, and the uploads' bytes."""
    params = DataCollaboration(
        n_clusters=N_CLUSTERS,
        algorithm=given.algorithm,
        n_init=given.starts,
        max_iter=given.updates,
    )
    layout = Layout.lattice(len(sources))
    session = Session(params, layout, sources, seed=1)
    session.until(messages.Project)
    blobs, opened = place.open(), session.open
    anchors = np.random.default_rng(1).standard_normal((N_ANCHORS, given.columns))
    contributions, size = {}, 0
    for slot, source in sources.items():
        task = packets.read(opened.tasks[slot])
        contributions[slot], own = _upload(place, task, source, anchors)
        size += own
    job = worker.Job(
        blobs=place,
        agreement=session.agreement,
        state=blobs.put(opened.state),
        tasks={slot: blobs.put(task) for slot, task in opened.tasks.items()},
        contributions=contributions,
    )
    return job, size


def _upload(
    place: BlobPlace, task: packets.Packet, source: Made, anchors: FloatArray
) -> tuple[str, int]:
    """Store what a party would upload; return its digest and size.

    Its rows lie in a file that goes once they are stored.
    """
    columns = anchors.shape[1]
    F = KeyedStream(bytes([source.party]) * 32).rotation(columns)[:, : columns - 1]
    shape = (source.n_rows, columns - 1)
    with tempfile.NamedTemporaryFile(dir=place.folder) as scratch:
        rows = np.memmap(scratch.name, np.float64, "w+", shape=shape)
        for first, (made, _) in zip(
            range(0, source.n_rows, _ROWS), source.blocks(), strict=True
        ):
            rows[first : first + len(made)] = made @ F
        record = {"kind": messages.Projections.kind, "version": 1, "values": {}}
        content = packets.content_of(record, {"rows": rows, "anchors": anchors @ F})
        header = packets.Header(address=task.address, record={})
        draft = place.open().draft()
        for piece in codec.pieces(
            header.model_dump(mode="json"), {packets.CONTENT: content}
        ):
            view = memoryview(piece)
            for begin in range(0, len(view), _PIECE):
                draft.write(bytes(view[begin : begin + _PIECE]))
        digest = draft.seal()
        draft.keep()
    return digest, draft.size


def _run(kind: str, job: worker.Job, given: argparse.Namespace) -> Outcome:
    """Return what a step becomes under an engine."""
    print(f"engine  {kind}", flush=True)
    if kind == "local":
        return _measured(job, given.memory, None)
    data = job.blobs.folder.parent
    with dask_workers.running(data, given.workers, given.worker_memory) as workers:
        choice = EngineChoice(kind="dask", scheduler=workers.address)
        return _measured(replace(job, engine=choice), given.memory, workers)


def _measured(job: worker.Job, gibibytes: float, workers: Workers | None) -> Outcome:
    """Return what a process of its own makes of a step."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=_step, args=(far, job, gibibytes))
    process.start()
    far.close()
    elsewhere = [] if workers is None else workers.processes
    with held_memory.watched([process.pid or 0, *elsewhere]) as most:
        seconds, before, moved = near.recv()
    process.join()
    first, *others = most.values()
    return Outcome(seconds, before, first, others, moved)


def _step(parent: Connection, job: worker.Job, gibibytes: float) -> None:
    held_memory.hold(gibibytes)
    engine.prepare(job.agreement)  # as a worker does while parties answer
    before, begin = held_memory.now("self"), time.perf_counter()
    moved = worker.run(job)
    parent.send((time.perf_counter() - begin, before, moved))


def _report(
    outcome: Outcome, size: int, blobs: BlobStore, sources: Mapping[str, Made]
) -> int:
    if not isinstance(outcome.moved, engine.Opened):
        print(f"the step failed: {outcome.moved}")
        return 1
    state = memoryview(blobs.map(outcome.moved.state))
    told = PendingResults.decode(AnalystState.decode(state).held).by_slot
    labels = {
        slot: messages.RowGroupLabels.decode(told[slot].data).labels for slot in sources
    }
    agreement = min(_agreement(sources[slot], labels[slot]) for slot in sources)
    most, before = outcome.most, outcome.before
    ratio = (most.resident - before.resident) / size
    print(
        f"step    {outcome.seconds:.1f} s, state with the labels {len(state) >> 20} MiB"
    )
    print(
        f"memory  {most.own >> 20:,} MiB of its own (before {before.own >> 20}), "
        f"{most.resident >> 20:,} MiB with mapped uploads (before "
        f"{before.resident >> 20}): grown by {ratio:.2f} × the uploads (goal {GOAL})"
    )
    for each in outcome.workers:
        print(
            f"worker  {each.own >> 20:,} MiB of its own, {each.resident >> 20:,} MiB "
            "with mapped uploads"
        )
    print(
        f"labels  least adjusted Rand index with the groups {agreement:.3f}, SHA-256 "
        f"{_digest(labels)}"
    )
    return int(ratio > GOAL or agreement < LEAST_AGREEMENT)


def _digest(labels: Mapping[str, IntArray]) -> str:
    found = sha256()
    for each in labels.values():
        found.update(np.ascontiguousarray(each).data)
    return found.hexdigest()[:16]


def _agreement(source: Made, labels: IntArray) -> float:
    made = islice(source.blocks(), _COMPARED)
    groups = np.concatenate([groups for _, groups in made])
    return adjusted_rand(groups, labels[: len(groups)])


if __name__ == "__main__":
    sys.exit(main())
