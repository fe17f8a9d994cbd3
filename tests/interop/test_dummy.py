"""A party in TypeScript, in sessions with parties of the package."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.analyst_process import Crowd

from clustering_protocols import simulation
from clustering_protocols.engine.message_tables import build_message_table
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
LAYOUT = Layout.lattice(3)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)
OLDEST_NODE = 20


def _why_not() -> str:
    """Why Node cannot run the client here; empty where it can."""
    node = shutil.which("node")
    if node is None:
        return "there is no Node"
    found = subprocess.run(
        [node, "--version"], capture_output=True, text=True, check=True
    )
    if int(found.stdout.lstrip("v").split(".")[0]) < OLDEST_NODE:
        return f"Node is older than {OLDEST_NODE}"
    if not (CLIENT / "node_modules").is_dir():
        return f"nobody ran 'npm ci' in {CLIENT.name}"
    return ""


pytestmark = pytest.mark.skipif(bool(_why_not()), reason=_why_not())


def _start(crowd: Crowd, slot: str, folder: Path) -> subprocess.Popen[str]:
    data = crowd.data[slot]
    rows = np.vstack(list(data.batches()))
    lines = [
        ",".join(data.columns),
        *(",".join(map(repr, row)) for row in rows.tolist()),
    ]
    (folder / "rows.csv").write_text("\n".join(lines), encoding="utf-8")
    (folder / "invitation").write_text(crowd.invitations[slot], encoding="utf-8")
    words = ["node", "--import", "tsx", "src/cli.ts", "--home", str(folder / "client")]
    for option in ("invitation", "rows.csv", "labels"):
        words += [f"--{option.replace('rows.csv', 'data')}", str(folder / option)]
    for risk in crowd.session.status().risks:
        words += ["--accept-risk", risk]
    return subprocess.Popen(
        words, cwd=CLIENT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("slot", ["r1c1", "r3c1"])
def test_a_party_in_typescript_gets_its_labels(
    gather: Callable[..., Crowd], slot: str, tmp_path: Path
) -> None:
    crowd = gather(Dummy(n_clusters=3, void_attempts=1), PARTS)
    process = _start(crowd, slot, tmp_path)
    crowd.start(*(each for each in LAYOUT.names if each != slot))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    lines = (tmp_path / "labels").read_text(encoding="utf-8").splitlines()[1:]
    labels = [int(line.split(",")[1]) for line in lines]
    assert {**crowd.labels(), slot: labels} == crowd.expected()
    kept = [each for each in (tmp_path / "client").rglob("*") if each.is_file()]
    assert kept
    assert all(each.stat().st_mode & 0o077 == 0 for each in kept)


def test_types_are_those_of_the_messages_that_an_analyst_serves(tmp_path: Path) -> None:
    files = []
    for name in ("dummy",):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(build_message_table(name).model_dump(mode="json")))
        files.append(str(file))
    subprocess.run(
        ["node", "--import", "tsx", "scripts/generate.ts", "--check", *files],
        cwd=CLIENT,
        check=True,
    )
