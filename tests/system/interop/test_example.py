"""The session of docs/integrator.md runs as it stands there."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from support.analyst_process import Crowd

from clustering_protocols import simulation
from clustering_protocols.protocols.llf.params import LosslessFederated
from clustering_protocols.terms.terms import Layout
from tests.system.interop.client_process import CLIENT, write_rows

ROOT = Path(__file__).parents[3]
LAYOUT = Layout.lattice(3)
SLOT = LAYOUT.names[0]
MOST_LINES = 20


def test_the_page_s_program_takes_part(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "integrator.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```ts\n(.*?)```", page, re.DOTALL)
    assert len(program.splitlines()) <= MOST_LINES
    groups = np.arange(90) % 3
    rows = np.random.default_rng(0).normal(size=(90, 3)) + 9 * groups[:, None]
    crowd = gather(
        LosslessFederated(n_clusters=3), simulation.split(rows, LAYOUT, seed=1)
    )
    data = crowd.data[SLOT]
    own = np.vstack(list(data.batches()))
    write_rows(tmp_path / "rows.csv", data.columns, own.tolist(), data.ids)
    files = {
        "session.ts": program,
        "invitation.txt": crowd.invitations[SLOT],
        "accepted-risks.txt": "\n".join(crowd.session.status().risks),
        "package.json": '{"type": "module"}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    installed = tmp_path / "node_modules"
    installed.mkdir()
    (installed / "coterie-party").symlink_to(CLIENT)
    (installed / "tsx").symlink_to(CLIENT / "node_modules" / "tsx")
    crowd.start(*(slot for slot in LAYOUT.names if slot != SLOT))
    subprocess.run(
        ["node", "--import", "tsx", "session.ts"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=120,
    )
    crowd.join()
    lines = (tmp_path / "labels.csv").read_text(encoding="utf-8").splitlines()
    ids, clusters = zip(*(line.split(",") for line in lines), strict=True)
    assert list(ids) == list(data.ids)
    made_in = np.rint(own.mean(axis=1) / 9).tolist()
    assert len({*zip(clusters, made_in, strict=True)}) == 3
