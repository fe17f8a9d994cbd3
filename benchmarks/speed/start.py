"""How long it takes from nothing to labels and a report: the commands of docs/start.md.

    python -m benchmarks.speed.start

They run as printed, in a shell, a new folder and a new home, on a free port; ends with 1
if there are more than ten of them, or one fails.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "start.md"
MOST: Final = 10
_BLOCK: Final = re.compile(
    r"^<!-- the short way -->\n```console\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_COMMAND: Final = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)


def commands(page: str) -> list[str]:
    """Return the commands of the short way, as printed."""
    [block] = _BLOCK.findall(page)
    found = _COMMAND.findall(block)
    return [command.replace("\\\n", " ") for command in found]


def follow(folder: Path, port: int) -> float:
    """Run the short way in a folder; return the seconds that it took.

    Raises CalledProcessError if a command fails.
    """
    lines = [line.replace("8443", str(port)) for line in commands(PAGE.read_text())]
    script = "\n".join(["set -e", "trap 'kill $(jobs -p)' EXIT", *lines])
    here = Path(sys.executable).parent
    environment = {
        "PATH": f"{here}:/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
    begin = time.perf_counter()
    subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - begin


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def main() -> int:
    """Print the time; return the exit code."""
    number = len(commands(PAGE.read_text()))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        seconds = follow(folder, _free_port())
        n_labels = len((folder / "south-labels.csv").read_text().splitlines()) - 1
        n_bytes = (folder / "report.html").stat().st_size
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"commands   {number} (at most {MOST})")
    print(f"seconds    {seconds:.1f} on {os.cpu_count()} processors")
    print(f"processor  {used.ru_utime + used.ru_stime:.1f} s of all processes")
    print(f"labels     {n_labels}, and a report of {n_bytes:,} bytes")
    return int(number > MOST)


if __name__ == "__main__":
    sys.exit(main())
