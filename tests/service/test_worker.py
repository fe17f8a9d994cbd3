"""What a step writes: all of it, and no payload behind another that waits."""

from __future__ import annotations

import threading
from hashlib import sha256
from pathlib import Path

import numpy as np

from analyst_service.blobs.files import BlobPlace, FileBlobStore
from analyst_service.jobs import worker
from clustering_protocols import simulation
from clustering_protocols.engine import Opened
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout


class SlowStore(FileBlobStore):
    """Writes nothing before two wait to be written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.pair = threading.Barrier(2, timeout=30)

    def put(self, content: bytes) -> str:
        """Store bytes, once another wants the same."""
        self.pair.wait()
        return super().put(content)


class Place(BlobPlace):
    """Where blobs lie slowly."""

    def open(self) -> SlowStore:
        """Return the store."""
        return SlowStore(self.folder)


def test_payloads_wait_for_the_disk_together(tmp_path: Path) -> None:
    layout = Layout.lattice(3)  # three tasks and the state
    data = simulation.split(np.eye(30), layout, seed=1).data
    agreement = simulation.agree(Dummy(), layout, data, seed=1, session="s")
    job = worker.Job(
        blobs=Place(folder=tmp_path),
        agreement=agreement,
        state=None,
        tasks={},
        contributions={},
    )
    opened = worker.run(job)
    assert isinstance(opened, Opened)
    assert len(opened.payloads) == 4
    store = FileBlobStore(tmp_path)
    assert [
        sha256(store.file(digest).read_bytes()).hexdigest()
        for digest in opened.payloads
    ] == opened.payloads
