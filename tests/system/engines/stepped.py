"""A session whose steps are taken as a worker process of the analyst takes them."""

from collections.abc import Mapping
from typing import Any

from analyst_service import worker
from analyst_service.blobs import BlobLocation
from clustering_protocols.simulation import Session
from clustering_protocols.simulation.session import ANALYST


class Stepped(Session):
    """Blobs in, blobs out; ``steps``: each job, and the digests of what it stored."""

    def __init__(self, place: BlobLocation, *args: Any, **given: Any) -> None:
        self.place = place
        self.steps: list[tuple[worker.Job, list[str]]] = []
        super().__init__(*args, **given)

    def job(self, contributions: Mapping[str, bytes]) -> worker.Job:
        put = self.place.open().put
        return worker.Job(
            blobs=self.place,
            agreement=self.agreement,
            state=put(self.open.state),
            tasks={slot: put(task) for slot, task in self.open.tasks.items()},
            contributions={slot: put(each) for slot, each in contributions.items()},
        )

    def advance(self, contributions: Mapping[str, bytes]) -> None:
        for slot, contribution in contributions.items():
            self.record_message(slot, ANALYST, contribution)
        job = self.job(contributions)
        followed = worker.run_step(job)
        assert not isinstance(followed, worker.Failed), followed.detail
        self.steps.append((job, list(followed.payloads)))
        blobs = self.place.open()
        move = followed.map_payloads(
            lambda p: bytes(blobs.map(p)) if isinstance(p, str) else p
        )
        self.move = self.store_move(move)
