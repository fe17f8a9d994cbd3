"""Dask's workers that an analyst starts for itself, on a machine that others share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.repeats import on_command

from analyst_service.blobs.opening import BlobPlace
from analyst_service.engines import cluster

pytestmark = on_command("processes of Dask")
STRANGER = """
import os, sys
from distributed import Client
from distributed.security import Security
for address, security in (
    (sys.argv[1], Security.temporary()),
    (sys.argv[1].replace("tls://", "tcp://"), None),
):
    try:
        with Client(address, timeout="3s", security=security) as client:
            print("uid", client.submit(os.getuid).result(timeout=5))
    except (OSError, TimeoutError, TypeError) as error:
        print("turned away", type(error).__name__)
"""


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("COTERIE_DATABASE_URL", "postgresql://a:secret@b/c")
        patch.setenv("COTERIE_SMTP_PASSWORD_FILE", "/secret")
        yield


@pytest.mark.thorough
@pytest.mark.threat(138)
@pytest.mark.usefixtures("secrets")
def test_who_has_no_certificate_gets_no_worker_to_run_code(tmp_path: Path) -> None:
    """Whichever account it is: here even the one that runs them."""
    running = cluster.connected("", 60, BlobPlace(folder=tmp_path / "blobs"))
    try:
        assert running.n_threads() == os.cpu_count()
        own = running._own
        assert own is not None
        assert own.scheduler_address.startswith("tls://127.0.0.1")
        said = subprocess.run(
            [sys.executable, "-c", STRANGER, own.scheduler_address],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")
        assert [line[:11] for line in said] == ["turned away", "turned away", ""]
        held = running._client.run(lambda: dict(os.environ))
        assert held
        for environment in held.values():
            assert not any("secret" in value for value in environment.values())
    finally:
        running.close()
        cluster._kept = None
