"""The example of docs/protocol-package.md: seven files make a protocol that runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.protocol_wheels import write_metadata

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"
PROGRAM = """
import json
import numpy as np
from sklearn.metrics import adjusted_rand_score
from clustering_protocols import catalogue, protocol_packages, simulation
protocol_packages.use_packages(lambda: ["coterie-oneshot"])
protocol = catalogue.protocol("oneshot")
[example] = protocol.reference().examples()
parts = simulation.split(example.X, example.layout, 1)
run = simulation.run(example.params, example.layout, parts.data, 1)
found = np.full(len(example.X), -1)
for slot, outcome in run.outcomes.items():
    found[parts.held[slot]] = outcome.labels
pooled = protocol.reference().cluster_pooled(example.params, example.X, None)
print(json.dumps([run.rounds, adjusted_rand_score(found, pooled)]))
"""


@pytest.mark.slow
def test_a_protocol_of_one_upload_takes_few_files_and_finds_the_pooled_clusters(
    tmp_path: Path,
) -> None:
    files = sorted(EXAMPLES.glob("coterie_oneshot/*.py"))
    assert len(files) <= 8
    assert sum(path.read_text().count("\n") for path in files) <= 350
    entry_points = "[coterie.protocols]\noneshot = coterie_oneshot\n"
    write_metadata(tmp_path, "coterie-oneshot", entry_points)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(map(str, (tmp_path, EXAMPLES, ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    rounds, agreement = json.loads(ended.stdout)
    assert rounds == 3  # one upload, between the two that are signed
    assert agreement == 1.0
