"""Functions that tests run in other processes; the module imports little, to start fast."""

import os
import threading
from multiprocessing.connection import Connection
from typing import Any

from analyst_service import worker
from analyst_service.blobs import FileBlobStore
from analyst_service.database import Database
from analyst_service.metrics import Metrics
from analyst_service.process_context import Service
from analyst_service.settings import Settings
from analyst_service.steps import build_job, store_result, take_lease


def race(settings: Settings, barrier: Any, wins: Any, rounds: int) -> None:
    blobs = FileBlobStore(settings.blob_location.folder)
    database = Database(settings.database)
    parts = {"settings": settings, "database": database, "blobs": blobs}
    service = Service(**parts, metrics=Metrics())
    for _ in range(rounds):
        barrier.wait()
        lease = database.transact(take_lease, service.lease_span)
        if lease is not None:
            followed = worker.run_step(
                database.query(build_job, service, lease.session)
            )
            if database.transact(store_result, service.blobs, lease, followed):
                wins.put(os.getpid())
        barrier.wait()


def with_a_worker(told: Connection) -> None:
    told.send(worker.WorkerProcess()._child.pid)
    threading.Event().wait()
