"""Dask's workers that an analyst starts for itself, on a machine that others share."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.repeats import on_command

from analyst_service.blobs import BlobLocation
from analyst_service.engines import dask_engine as cluster

pytestmark = on_command("processes of Dask")
STRANGER = """
import os, sys
from distributed import Client
from distributed.security import Security
if len(sys.argv) > 2:  # another account, once all is imported
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
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


NOBODY = 65_534
# another account is tried where this one may become it
ACCOUNTS = (None, NOBODY) if os.getuid() == 0 else (None,)


def ask_for_work(account: int | None, address: str) -> list[str]:
    """Have an account ask workers to run code; return what came of each try."""
    words = [] if account is None else [str(account)]
    return subprocess.run(
        [sys.executable, "-c", STRANGER, address, *words],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("COTERIE_DATABASE_URL", "postgresql://a:secret@b/c")
        patch.setenv("COTERIE_SMTP_PASSWORD_FILE", "/secret")
        patch.setenv("COTERIE_BLOB_STORE_FILE", "/secret")
        patch.setenv("PGPASSWORD", "secret")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "secret")
        patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/secret")
        yield


@pytest.mark.thorough
@pytest.mark.threat(138, 176)
@pytest.mark.usefixtures("secrets")
def test_who_has_no_certificate_gets_no_worker_to_run_code(tmp_path: Path) -> None:
    """Whichever account it is, even the one that runs them."""
    place = BlobLocation(folder=tmp_path / "blobs", url="s3://nowhere/blobs")
    running = cluster.connect_to_cluster("", place)
    try:
        assert running.count_threads() == os.cpu_count()
        own = running._own
        assert own is not None
        assert own.scheduler_address.startswith("tls://127.0.0.1")
        for account in ACCOUNTS:
            said = ask_for_work(account, own.scheduler_address)
            assert [line[:11] for line in said] == ["turned away", "turned away"]
        held = running._client.run(_environment)
        assert held
        for environment in held.values():
            assert b"COTERIE_DATA_DIR" in environment
            assert b"secret" not in environment
            assert b"s3://" not in environment
    finally:
        running.close()


def _environment() -> bytes:
    """What the worker holds, and what its process was started with."""
    now = "".join(f"{name}={value};" for name, value in os.environ.items())
    return now.encode() + Path("/proc/self/environ").read_bytes()
