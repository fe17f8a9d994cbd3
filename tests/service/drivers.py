"""Drivers in processes of their own; these import no more than they need to start."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

from analyst_service import process_context, worker
from analyst_service.blobs import FileBlobStore
from analyst_service.database import Database
from analyst_service.driver import Driver
from analyst_service.metrics import Metrics
from analyst_service.process_context import Service
from analyst_service.settings import Settings
from analyst_service.steps import follow, job_of, take
from analyst_service.worker import Process


def service_of(settings: Settings) -> Service:
    blobs = FileBlobStore(settings.blob_place.folder)
    database = Database(settings.database)
    return Service(settings=settings, database=database, blobs=blobs, metrics=Metrics())


def race(settings: Settings, barrier: Any, wins: Any, rounds: int) -> None:
    service = service_of(settings)
    while rounds > 0:
        barrier.wait()
        database = service.database
        lease = database.transact(take, service.lease_span)
        if lease is not None:
            followed = worker.run(database.query(job_of, service, lease.session))
            if database.transact(follow, service.blobs, lease, followed):
                wins.put(os.getpid())
        barrier.wait()
        rounds -= 1


class Held(Process):
    """Runs a step within the driver's thread, and waits there to be let go."""

    def __init__(self, told: Connection, go: Connection) -> None:
        self.told, self.go = told, go

    def submit(self, job: worker.Job) -> Future[worker.Outcome]:
        future: Future[worker.Outcome] = Future()
        future.set_result(worker.run(job))
        self.told.send("has stepped")
        self.go.recv()
        return future

    def end(self) -> None:
        pass


def drive(settings: Settings, told: Connection, go: Connection, *, held: bool) -> None:
    process_context.LEASE_SECONDS = 0.5  # of this process alone

    class HeldDriver(Driver):
        def _new_process(self) -> Process:
            return Held(told, go) if held else Process()

    with HeldDriver(service_of(settings)):
        told.send("drives")
        threading.Event().wait()
