"""A party of clients/typescript, as a process of its own."""

import atexit
import csv
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from support.needs import NODE, leave_out

from clustering_protocols.shared_stages.alignment.identifiers import split_id

CLIENT = Path(__file__).parents[3] / "clients" / "typescript"
OLDEST_NODE = 20
RUN = ("node", "--import", "tsx")
BUNDLE = ("--bundle", "--platform=node", "--format=esm")
# esbuild leaves this to the one who bundles modules of the older kind for Node
REQUIRE = "import { createRequire } from 'node:module';"
REQUIRE += "const require = createRequire(import.meta.url);"


def require_client() -> None:
    """Leave the test out, aloud, where Node cannot run the client."""
    if why := _find_obstacle():
        leave_out(NODE, why)


def _find_obstacle() -> str:
    node = shutil.which("node")
    if node is None:
        return "there is no Node"
    said = subprocess.run(
        [node, "--version"], capture_output=True, text=True, check=True
    ).stdout
    if int(re.sub(r"\D.*", "", said.lstrip("v"))) < OLDEST_NODE:
        return f"Node is older than {OLDEST_NODE}"
    if not (CLIENT / "node_modules" / ".package-lock.json").is_file():
        return "the client's packages are not installed"
    return ""


def write_rows(
    file: Path,
    columns: Sequence[str],
    rows: Sequence[Sequence[float]],
    ids: Sequence[str] | None = None,
) -> list[str]:
    """Write a table as the client reads it; all digits of each number.

    Return the names of its id columns: one for each part of an id.
    """
    parts = [split_id(each) for each in ids] if ids is not None else [()] * len(rows)
    names = [f"id{place or ''}" for place, _ in enumerate(parts[0])]
    lines = [(*part, *map(repr, row)) for part, row in zip(parts, rows, strict=True)]
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([(*names, *columns), *lines])
    return names


@cache
def bundle(program: str) -> str:
    """Bundle a program of the client into one file, and return its path.

    It is compiled once here, and by ``tsx`` at each start: half a second each.
    ``test_example`` and the conformance tests start the client that way.
    """
    folder = tempfile.TemporaryDirectory(prefix="client")
    atexit.register(folder.cleanup)
    file = str(Path(folder.name) / "program.mjs")
    subprocess.run(
        [
            str(CLIENT / "node_modules" / ".bin" / "esbuild"),
            *(program, f"--outfile={file}", f"--banner:js={REQUIRE}"),
            *(*BUNDLE, "--log-level=warning"),
        ],
        cwd=CLIENT,
        check=True,
    )
    return file


def start_party(
    folder: Path, invitation: str, risks: Sequence[str], *more: str
) -> subprocess.Popen[str]:
    """Start a party with folder/rows.csv; folder/labels is what it writes."""
    (folder / "invitation").write_text(invitation, encoding="utf-8")
    places = {
        "home": "client",
        "invitation": "invitation",
        "data": "rows.csv",
        "labels": "labels",
    }
    words = ["node", bundle("src/cli.ts"), *more]
    for option, name in places.items():
        words += [f"--{option}", str(folder / name)]
    for risk in risks:
        words += ["--accept-risk", risk]
    return subprocess.Popen(
        words, cwd=CLIENT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def read_labels(folder: Path) -> list[int]:
    lines = (folder / "labels").read_text(encoding="utf-8").splitlines()[1:]
    return [int(line.rpartition(",")[2]) for line in lines]


def run_client(*words: str, given: str = "") -> str:
    done = subprocess.run(
        [*RUN, *words],
        cwd=CLIENT,
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout
