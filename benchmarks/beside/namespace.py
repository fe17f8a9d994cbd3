"""Runs a command in a network namespace; writes seconds, CPU seconds and bytes.

    unshare --map-root-user --net python -m benchmarks.beside.namespace FILE -- COMMAND …

Everything that the command starts is counted, daemons too: this process adopts them, ends
them when the command has ended, and waits for them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

PR_SET_CHILD_SUBREAPER: Final = 36
GRACE: Final = 5.0  # seconds until what is left of the command is killed


def loopback_bytes() -> int:
    """Return the bytes that the loopback interface has sent."""
    [line] = re.findall(r"lo:(.*)", Path("/proc/net/dev").read_text())
    return int(line.split()[8])


def children() -> list[int]:
    """Return this process's children."""
    tasks = Path("/proc/self/task").iterdir()
    return [
        int(pid) for task in tasks for pid in (task / "children").read_text().split()
    ]


def end_children() -> None:
    """End the processes that the command left running, and wait for them."""
    deadline = time.monotonic() + GRACE
    while pids := children():
        late = time.monotonic() > deadline
        for pid in pids:
            os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        while os.waitpid(-1, os.WNOHANG)[0]:
            if not children():
                return
        time.sleep(0.1)


def main(file: str, _: str, *command: str) -> int:
    """Run the command, write its costs into the file, and return its exit code."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, begin = loopback_bytes(), time.perf_counter()
    code = subprocess.run(command, check=False).returncode
    seconds = time.perf_counter() - begin
    with contextlib.suppress(ChildProcessError):
        end_children()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    costs = {
        "seconds": seconds,
        "cpu": used.ru_utime + used.ru_stime,
        "bytes": loopback_bytes() - before,
    }
    Path(file).write_text(json.dumps(costs))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
