"""Protocols in packages of their own: the example of the docs, and unusable packages."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.protocol_wheels import write_metadata

from clustering_protocols import catalogue, protocol_packages
from clustering_protocols.common.errors import InvalidParameters


@pytest.fixture
def named() -> Iterator[None]:
    """What this process names is put back."""
    before = list(protocol_packages._sources)
    yield
    protocol_packages._sources[:] = before
    protocol_packages.find_modules.cache_clear()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("dc = mine", "a protocol of 'clustering_protocols.protocols.dc'"),
        ("house = mine", "not 'house'"),
        ("Mine = mine", "lower-case letters"),
        ("a.b = mine", "lower-case letters"),
        ("mine = mine:PROTOCOL", "does not name a module"),
    ],
)
@pytest.mark.usefixtures("named")
def test_a_name_that_cannot_be_is_refused(
    entry: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "mine", f"[coterie.protocols]\n{entry}\n")
    monkeypatch.syspath_prepend(tmp_path)
    protocol_packages.use_packages(lambda: ["mine"])
    with pytest.raises(InvalidParameters, match=said):
        catalogue.catalogue()
    assert catalogue.protocol("dc").version  # what Coterie brings is there all the same


@pytest.mark.usefixtures("named")
def test_a_named_package_without_a_protocol_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "mine", "[other]\na = b\n")
    write_metadata(tmp_path, "yours", "[coterie.protocols]\nyours = not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name, said in (
        ("absent", "not installed here"),
        ("mine", "has no protocol"),
        ("yours", "cannot be used: No module named 'not_there'"),
    ):
        protocol_packages.use_packages([name].copy)
        with pytest.raises(InvalidParameters, match=said):
            catalogue.catalogue()


QUIET = """
from types import SimpleNamespace
from clustering_protocols.protocols.dummy import DummyProtocol
class Quiet(DummyProtocol):
    def reference(self):
        return SimpleNamespace(examples=list)
PROTOCOL = Quiet()
"""


@pytest.mark.usefixtures("named")
def test_a_protocol_without_an_example_does_not_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "quiet", "[coterie.protocols]\nquiet = quiet_protocol\n")
    (tmp_path / "quiet_protocol.py").write_text(QUIET)
    monkeypatch.syspath_prepend(tmp_path)
    protocol_packages.use_packages(lambda: ["quiet"])
    with pytest.raises(InvalidParameters, match="has no example"):
        catalogue.catalogue()


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
def test_the_protocol_of_the_docs_finds_the_pooled_clusters(
    tmp_path: Path,
) -> None:
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
