"""An analyst with Dask behind it, over HTTP: the labels of a simulation, killed or not."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from distributed import Client
from support.analyst_process import Analyst, Crowd, wait_for
from support.dask_clusters import Processes
from support.repeats import on_command

from clustering_protocols import simulation
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.terms.terms import Layout

pytestmark = on_command("processes of Dask")

LAYOUT = Layout.lattice(2)
X = np.random.default_rng(0).normal(size=(400, 6))
PARTS = simulation.split(X, LAYOUT, seed=1)
PARAMS = DataCollaboration(n_clusters=3, n_init=2, dimensions="all_but_one")
# not imported: it changes the engine of anyone who imports it
PROGRAM = str(Path(__file__).with_name("eager_dask.py"))


def with_dask(folder: Path, **settings: str) -> Analyst:
    analyst = Analyst(folder, program=PROGRAM, cold=True)
    tests = str(Path(__file__).parents[2])
    analyst.environment |= {
        "COTERIE_ENGINE": "dask",
        "PYTHONPATH": tests,
        **settings,
    }
    return analyst


LONG = DataCollaboration(n_clusters=3, n_init=500, dimensions="all_but_one")


def left(cluster: Processes) -> int:
    """Return how many tasks the scheduler and its workers know of."""
    with Client(cluster.address, set_as_default=False) as client:
        queued = client.run_on_scheduler(
            lambda dask_scheduler: len(dask_scheduler.tasks)
        )
        held = client.run(lambda dask_worker: len(dask_worker.state.tasks))
    return int(queued) + sum(held.values())


def test_a_cancelled_session_leaves_no_work_to_workers(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "analyst"
    tests = str(Path(__file__).parents[2])
    cluster = Processes(2, {"COTERIE_DATA_DIR": str(folder), "PYTHONPATH": tests})
    address = cluster.address.replace("tcp:", "tcp+plain:")
    with with_dask(folder, COTERIE_ENGINE=address) as analyst:
        long = Crowd(analyst, tmp_path / "long", LONG, LAYOUT, PARTS.data)
        long.start()
        wait_for(lambda: left(cluster) > 0)
        assert long.session.cancel().state == "cancelled"
        wait_for(lambda: left(cluster) == 0)
        time.sleep(2)  # more than a lease: nobody takes the step again
        assert left(cluster) == 0
        other = Crowd(
            analyst, tmp_path / "other", PARAMS, LAYOUT, PARTS.data, session="t"
        )
        other.start()
        assert other.labels() == other.expected()
        assert left(cluster) == 0
        other.close()
        long.close()
    cluster.close()
