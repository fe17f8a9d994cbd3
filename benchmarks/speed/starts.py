"""CPU time of each start: user and system, of the process that starts.

coterie --help, coterie party --help      until they end.
analyst      `coterie serve`, until it has answered its first request.
worker       a process that steps rounds, until it has taken a session's first step.
prepared     the same, once all is imported that the session's later steps need.

Other work on the machine makes starts slower and never faster, so the least of several
runs is the figure; the bare interpreter, for which there is no goal, tells how fast the
machine is.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.speed.figures import Figure

# A worker process imports this module again: functions import what it must not load.

COTERIE = [str(Path(sys.executable).with_name("coterie"))]


def children_seconds() -> float:
    """Return the CPU time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(words: list[str]) -> float:
    """Return the CPU time of a command."""
    begin = children_seconds()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return children_seconds() - begin


def analyst(folder: Path) -> float:
    """Return the CPU time of an analyst that is ended at its first answer."""
    from benchmarks.speed.analyst_process import AnalystProcess

    process = AnalystProcess(folder)
    begin = children_seconds()
    with process:
        pass
    return children_seconds() - begin


def agreement() -> bytes:
    """Return the agreement of a session of `dc` with two parties."""
    import numpy as np

    from clustering_protocols import simulation
    from clustering_protocols.numerics.data_source import MatrixSource
    from clustering_protocols.protocols.dc import DataCollaboration
    from clustering_protocols.terms.terms import Layout

    layout = Layout.lattice(2)
    data = {slot: MatrixSource(np.zeros((100, 8))) for slot in layout.names}
    params = DataCollaboration(n_clusters=2, dimensions="all_but_one")
    return simulation.build_agreement(params, layout, data, 0, session="starts")


def worker(agreed: bytes, folder: Path, *, prepared: bool) -> float:
    """Return the CPU time of a worker that was ended after its first step."""
    from analyst_service.blobs import BlobLocation
    from analyst_service.worker import Job, WorkerProcess
    from clustering_protocols.engine import Opened

    first = Job(
        blobs=BlobLocation(folder=folder),
        agreement=agreed,
        state=None,
        tasks={},
        contributions={},
    )
    begin = children_seconds()
    process = WorkerProcess()
    outcome = process.submit(first).result()
    if not isinstance(outcome, Opened):
        raise TypeError(f"the first step did not open a round: {outcome}")
    if prepared:
        time.sleep(0.2)  # it prepares while no job waits
        process.submit(first).result()
    process.kill()
    return children_seconds() - begin


def figures(*, small: bool) -> Iterator[Figure]:
    """Yield the least CPU time of each start."""
    with tempfile.TemporaryDirectory() as name:
        folder, agreed = Path(name), agreement()
        help_of_party = [*COTERIE, "party", "--help"]
        starts: tuple[tuple[str, float | None, Callable[[], float]], ...] = (
            ("a bare interpreter", None, lambda: command([sys.executable, "-c", ""])),
            ("coterie --help", 0.5, lambda: command([*COTERIE, "--help"])),
            ("coterie party --help", 0.5, lambda: command(help_of_party)),
            ("analyst", 1.0, lambda: analyst(folder)),
            ("worker", 1.5, lambda: worker(agreed, folder, prepared=False)),
            ("worker, prepared", None, lambda: worker(agreed, folder, prepared=True)),
        )
        for start_of, goal, start in starts:
            least = min(start() for _ in range(1 if small else 7))
            yield Figure(f"start of {start_of}, s of CPU time", least, goal)
