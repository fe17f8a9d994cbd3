"""`llf` over HTTP, the analyst and each party in a process. Arguments: FOLDER."""

import json
import subprocess
import sys
from pathlib import Path

import lloyd
import numpy as np

from benchmarks.speed.analyst_process import open_session
from clustering_protocols.protocols.llf import LosslessFederated
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
    parts = [lloyd.site(folder, number) for number in range(1, n_parties + 1)]
    with open_session(folder, params, parts) as (_, session):
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
    labels = np.concatenate(
        [np.load(folder / f"{s}.labels.npy") for s in sorted(invitations)]
    )
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
