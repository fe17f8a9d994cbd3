"""A real session in one process of Python: what it brings, and that nothing stays."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sklearn.datasets import load_iris
from support.warm_child import start_warm

from clustering_protocols import simulation
from clustering_protocols.common import extras
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    InvalidParameters,
    RiskNotAccepted,
    Unavailable,
)
from coterie import DataCollaboration, Layout, Policy, local_session
from party_sdk.lab import local_sessions
from party_sdk.tables import open_table

FLOWERS = load_iris(as_frame=True).data
FRAMES = [FLOWERS[0::3], FLOWERS[1::3], FLOWERS[2::3]]
PARAMS = DataCollaboration(n_clusters=3, dimensions="all_but_one")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where sessions put their folders; and their analyst starts warm."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    start_warm(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def listens(url: str) -> bool:
    where = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((where.hostname or "", where.port or 0)) == 0


@pytest.mark.usefixtures("temporary")
def test_its_labels_are_those_of_the_simulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COTERIE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    with local_session(PARAMS, (3, 1), seed=5) as local:
        url = local.parties["r1c1"].invitation.url
        assert listens(url)
        assert list(local.parties) == ["r1c1", "r2c1", "r3c1"]
        assert set(local.risks) == set(local.session.terms.risks)
        with pytest.raises(InvalidParameters, match="has 3 parties, and there are 2"):
            local.run(FRAMES[:2])
        with pytest.raises(InvalidParameters, match="each of r1c1, r2c1, r3c1"):
            local.run({"north": FRAMES[0]})
        results = local.run(FRAMES)
        expected = simulation.run(
            PARAMS,
            Layout.lattice(3),
            dict(zip(local.parties, map(open_table, FRAMES), strict=True)),
            seed=5,
            session=local.session.id,
            analyst=local.session.terms.identities.analyst,
        )
    assert not listens(url)
    for result, outcome in zip(results, expected.outcomes.values(), strict=True):
        assert result.labels.tolist() == outcome.labels.tolist()
    shown = results[0].to_frame(FRAMES[0])
    assert shown.drop(columns="label").equals(FRAMES[0])  # with its index


@pytest.mark.usefixtures("temporary")
def test_what_stops_one_party_stops_all_and_is_what_is_raised() -> None:
    broken = FRAMES[2].assign(colour="white")
    with (
        pytest.raises(InvalidData, match="colour") as refused,
        local_session(PARAMS, (3, 1)) as local,
    ):
        local.run([*FRAMES[:2], broken])
    assert refused.value.__notes__ == ["This stopped the party 'r3c1'."]


@pytest.mark.usefixtures("temporary")
def test_parties_decide_as_they_are_told_to() -> None:
    params = DataCollaboration(n_clusters=3, dimensions="all")
    named = [frame.assign(flower=frame.index.astype(str)) for frame in FRAMES]
    with local_session(params, (3, 1), choices={"rebuild_limit": 1}) as local:
        results = local.run(named, id_column="flower")
        party = local.parties["r1c1"]
        kept, unnamed = party.result(named[0], id_column="flower"), party.result()
        with pytest.raises(GuardRefused, match="joined with other data"):
            party.result(named[0][::-1], id_column="flower")
    assert [len(result.labels) for result in results] == [50, 50, 50]
    assert kept.ids == results[0].ids == tuple(named[0]["flower"])
    assert unnamed.ids is None
    for found in (kept, unnamed):
        assert found.labels.tolist() == results[0].labels.tolist()


def test_risks_count_where_a_policy_is_given() -> None:
    with (
        pytest.raises(RiskNotAccepted, match=r"dc\.by-design"),
        local_session(PARAMS, (3, 1), policy=Policy()),
    ):
        pass


def test_without_the_service_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "find_spec", {"pandas": True}.get)
    with (
        pytest.raises(InvalidParameters, match=r"pip install 'coterie\[analyst\]'"),
        local_session(PARAMS, (3, 1)),
    ):
        pass


def test_an_analyst_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = [sys.executable, "-c", "import sys; sys.exit('no room on the disk')"]
    monkeypatch.setattr(local_sessions, "PROGRAM", program)
    with (
        pytest.raises(Unavailable, match="did not start: no room on the disk"),
        local_session(PARAMS, (3, 1)),
    ):
        pass


INTERRUPTED = """
import signal
import numpy as np
from coterie import LosslessFederated, local_session

# a run of the tests in the background ignores it, and so would its children
signal.signal(signal.SIGINT, signal.default_int_handler)
rows = np.random.default_rng(0).normal(size=(900, 3))
endless = LosslessFederated(n_clusters=8, max_iter=1000, tol=0.0, algorithm="fuzzy_cmeans", small_cohorts="allow")
with local_session(endless, (3, 1)) as local:
    print(local.parties["r1c1"].invitation.url, flush=True)
    local.run([rows[0::3], rows[1::3], rows[2::3]])
"""


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs a session, ended with its test whatever becomes of it."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_ctrl_c_leaves_nothing_behind(
    endless: subprocess.Popen[str], tmp_path: Path
) -> None:
    process = endless
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert listens(url)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert said.endswith("KeyboardInterrupt\n")
    assert not listens(url)
    assert not list(tmp_path.iterdir())
