"""A party in TypeScript, in sessions with parties of the package."""

from __future__ import annotations

import json
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
from tests.interop.client_process import (
    CLIENT,
    RUN,
    read_labels,
    start_party,
    write_rows,
)

LAYOUT = Layout.lattice(3)
X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, LAYOUT, seed=1)


@pytest.mark.parametrize("slot", ["r1c1", "r3c1"])
def test_a_party_in_typescript_gets_its_labels(
    gather: Callable[..., Crowd], slot: str, tmp_path: Path
) -> None:
    crowd = gather(Dummy(n_clusters=3, void_attempts=1), PARTS)
    data = crowd.data[slot]
    rows = np.vstack(list(data.batches())).tolist()
    write_rows(tmp_path / "rows.csv", data.columns, rows)
    risks = crowd.session.status().risks
    process = start_party(tmp_path, crowd.invitations[slot], risks)
    crowd.start(*(each for each in LAYOUT.names if each != slot))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert {**crowd.labels(), slot: read_labels(tmp_path)} == crowd.expected()
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
        [*RUN, "scripts/generate.ts", "--check", *files], cwd=CLIENT, check=True
    )
