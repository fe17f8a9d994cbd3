"""A temporary analyst that runs on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from clustering_protocols.common.errors import Unavailable
from clustering_protocols.common.extras import require_service
from clustering_protocols.protocol_packages import list_enabled_packages
from clustering_protocols.secrecy.identities import Institution
from party_sdk.home.files import create_private_folder, write_private

PROGRAM = [sys.executable, "-P", "-m", "party_sdk.cli.own_analyst"]
_START_SECONDS = 120
_POLL_SECONDS = 0.02


class LocalAnalyst(NamedTuple):
    """The address of a local analyst, and a coordinator's key for it."""

    url: str
    key: str


@contextmanager
def local_analyst(folder: Path, identity: Institution) -> Iterator[LocalAnalyst]:
    """Run an analyst with SQLite in a separate process, until the end of the block.

    The service's settings in the environment (``COTERIE_…``) are ignored, because they
    belong to another analyst.

    folder: where the analyst stores everything, including its log.

    Raises InvalidParameters if the service is not installed. Raises Unavailable if the
    analyst does not start; the message ends with the last line of its log.
    """
    require_service("An analyst of your own is the service")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # any free port
        port = int(probe.getsockname()[1])
    log = create_private_folder(folder) / "analyst.log"
    write_private(folder / "identity.json", identity.to_bytes())
    with log.open("wb") as lines:
        process = subprocess.Popen(  # noqa: S603  this interpreter, and no shell
            [*PROGRAM, str(port)],
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("COTERIE_")},
                "COTERIE_DATA_DIR": str(folder),
                "COTERIE_PROTOCOL_PACKAGES": ",".join(list_enabled_packages()),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=lines,
            start_new_session=True,  # Ctrl-C must end only the caller
        )
    with process:
        try:
            key = process.stdout.readline().decode().strip() if process.stdout else ""
            _wait_until_ready(process, port, log)
            yield LocalAnalyst(f"http://127.0.0.1:{port}", key)
        finally:
            if process.stdin is not None:
                process.stdin.close()  # ends the analyst


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(_POLL_SECONDS)
    lines = log.read_text(errors="replace").strip().splitlines()
    raise Unavailable(
        f"The analyst did not start: {lines[-1] if lines else 'nothing is in its log'}",
        remedy=f"Read its log: {log}",
    )
