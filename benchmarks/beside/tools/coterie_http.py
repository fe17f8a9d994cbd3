"""`llf` over HTTP, the analyst and each party in a process. Arguments: FOLDER."""

import json
import subprocess
import sys
from pathlib import Path

import lloyd
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.speed.analyst_process import AnalystProcess
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.terms import Layout
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.home.policy import Policy
from party_sdk.home.process_exit import run_without_finalisation
from party_sdk.party.participant import Party
from party_sdk.tables import open_table


def coordinate(folder):
    """Open a session, run the parties, and write the mean of the rows of each label."""
    n_parties, updates = lloyd.settings(folder)
    V = lloyd.start(folder)
    params = LosslessFederated(
        n_clusters=len(V),
        scaling="none",
        init="given",
        initial_centroids=tuple(tuple(map(float, row)) for row in V),
        max_iter=updates,
        tol=0,
    )
    layout = Layout.lattice(n_parties, 1)
    parts = [lloyd.site(folder, number) for number in range(1, n_parties + 1)]
    columns = [f"x{number}" for number in range(V.shape[1])]
    for slot, X in zip(layout.names, parts, strict=True):
        table = pa.table(dict(zip(columns, X.T, strict=True)))
        parquet.write_table(table, folder / f"{slot}.parquet")
    bound = float(max(np.abs(X).max() for X in parts))
    (folder / "analyst").mkdir()
    with (
        AnalystProcess(folder / "analyst") as analyst,
        Coordinator(analyst.url, analyst.key, home=folder) as coordinator,
    ):
        session = coordinator.create_session(
            "beside",
            params,
            layout,
            dictionary=[numeric_schema(columns, -bound, bound)],
        )
        invitations, risks = session.invite(), json.dumps(list(session.status().risks))
        processes = [
            subprocess.Popen(
                [sys.executable, __file__, str(folder), slot, invitation, risks]
            )
            for slot, invitation in invitations.items()
        ]
        codes = [process.wait() for process in processes]
        rounds = session.status().round
    if any(codes):
        sys.exit(max(codes))
    X = np.vstack(parts)
    labels = np.concatenate([np.load(folder / f"{s}.labels.npy") for s in layout.names])
    means = [X[labels == label].mean(axis=0) for label in np.unique(labels)]
    lloyd.write(folder, means, rounds)


def take_part(folder, slot, invitation, risks):
    """Run one of the parties, and write the labels of its rows."""
    policy = Policy(accepted_risks=frozenset(json.loads(risks)), least_known=0)
    data = open_table(folder / f"{slot}.parquet")
    with Party.join(invitation, policy=policy, home=folder / slot) as party:
        party.enrol(data)
        result = party.run(data)
    np.save(folder / f"{slot}.labels.npy", np.asarray(result.labels))


if sys.argv[2:]:
    run_without_finalisation(lambda: take_part(Path(sys.argv[1]), *sys.argv[2:]))
else:
    coordinate(Path(sys.argv[1]))
