"""A file of a user who imports `coterie` reads under `mypy --strict`."""

import subprocess
import sys
from pathlib import Path

USER = """
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coterie import (
    Coordinator, DataCollaboration, Evaluation, FederatedCoClustering,
    FederatedFuzzyCMeans, FederatedKMeans, FederatedSpectralClustering, Layout,
    LosslessFederated, Party, Policy, Result, SimulatedSession, datasets,
    local_session, simulate,
)


def try_methods(X: NDArray[np.float64], y: NDArray[np.int64]) -> float | None:
    dealt = datasets.deal(X, (3, 1), classes=y, concentration=0.5)
    model = FederatedKMeans(2, layout=dealt.layout, random_state=0).fit(dealt.tables)
    for each in (
        FederatedFuzzyCMeans(2),
        FederatedSpectralClustering(2),
        FederatedCoClustering(2),
    ):
        each.fit_predict(dealt.tables)
    reveal_type(model.labels_)
    session: SimulatedSession = simulate(
        LosslessFederated(n_clusters=2),
        X,
        (3, 1),
        evaluation=Evaluation(n_clusters=(2, 3)),
    )
    return session.objective_ratio


def take_part(address: str, key: str) -> Result:
    params, layout = DataCollaboration(n_clusters=3, dimensions="all_but_one"), Layout.lattice(2, 2)
    with Coordinator(address, key) as coordinator:
        invitations = coordinator.create_session("wards", params, layout).invite()
    policy = Policy(accepted_risks=frozenset({"a-risk"}))
    with Party.join(invitations["r1c1"], policy=policy) as party:
        return party.run("patients.csv", id_column="patient")


def play_here(folder: Path) -> list[Result]:
    with local_session(DataCollaboration(n_clusters=3, dimensions="all_but_one"), (3, 1)) as session:
        return session.run([folder / "a.csv", folder / "b.csv", folder / "c.csv"])
"""
WRONG = """
from coterie import FederatedKMeans, Layout, datasets

FederatedKMeans(clusters=3)
names: int = Layout.lattice(2, 2).names
datasets.deal([[1.0]], "rows")
"""
# Kept in the environment: most of the time goes to libraries, which stay the same.
CACHE = ("--cache-dir", str(Path(sys.prefix) / "mypy-of-users"))


def test_names_of_users_have_types(tmp_path: Path) -> None:
    for name, text in (("user", USER), ("wrong", WRONG)):
        (tmp_path / f"{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *CACHE, "--strict", "user.py", "wrong.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("wrong.py")]
    own = [line for line in lines if line.startswith("user.py")]
    assert len(own) == 1, own  # what is asked for
    assert "list[" in own[0]
    assert "signedinteger" in own[0]
    for line, code in ((4, "call-arg"), (5, "assignment"), (6, "arg-type")):
        assert [f"wrong.py:{line}:" in each and code in each for each in wrong].count(
            True
        ) == 1, wrong
