"""Parties in TypeScript get the labels that all parties in Python get, bit for bit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.analyst_process import Crowd

from clustering_protocols import simulation
from clustering_protocols.contract import Params
from clustering_protocols.engine.message_tables import build_message_table
from clustering_protocols.protocols.dc.params import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from tests.interop.client_process import CLIENT, RUN
from tests.interop.sessions import run_beside

ROWS = Layout.lattice(3)
FIRST, SECOND, LAST = ROWS.names


def make_parts(layout: Layout, n_columns: int = 4) -> simulation.Split:
    generator = np.random.default_rng(0)
    centres = generator.normal(scale=8, size=(3, n_columns))
    rows = centres[np.arange(90) % 3] + generator.normal(size=(90, n_columns))
    return simulation.split(rows, layout, seed=1)


@pytest.mark.parametrize(
    ("params", "foreign"),
    [
        (Dummy(n_clusters=3, void_attempts=1), [FIRST]),
        (Dummy(n_clusters=3, void_attempts=1), [LAST]),
        (DataCollaboration(n_clusters=3), [FIRST]),
        (DataCollaboration(n_clusters=3), [LAST]),
        (DataCollaboration(n_clusters=3), [FIRST, SECOND, LAST]),
    ],
)
def test_rows_split_by_parties(
    gather: Callable[..., Crowd], tmp_path: Path, params: Params, foreign: Sequence[str]
) -> None:
    crowd = gather(params, make_parts(ROWS))
    assert run_beside(crowd, tmp_path, foreign) == crowd.expected()
    kept = [each for each in tmp_path.rglob("client/**/*") if each.is_file()]
    assert kept
    assert all(each.stat().st_mode & 0o077 == 0 for each in kept)


def test_two_parties_pool_by_way_of_the_first(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    layout = Layout.lattice(2)
    crowd = gather(DataCollaboration(n_clusters=3), make_parts(layout))
    assert run_beside(crowd, tmp_path, layout.names[:1]) == crowd.expected()


def test_types_are_those_of_the_messages_that_an_analyst_serves(tmp_path: Path) -> None:
    files = []
    for written in sorted((CLIENT / "src" / "generated").glob("*.ts")):
        file = tmp_path / f"{written.stem}.json"
        table = build_message_table(written.stem)
        file.write_text(json.dumps(table.model_dump(mode="json")))
        files.append(str(file))
    assert len(files) > 1
    subprocess.run(
        [*RUN, "scripts/generate.ts", "--check", *files], cwd=CLIENT, check=True
    )
