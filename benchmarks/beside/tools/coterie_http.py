"""`llf` over HTTP, the analyst and each party in a process. Arguments: FOLDER."""

import sys
from pathlib import Path

import lloyd
import numpy as np

from benchmarks.speed.analyst_process import open_session, run_parties

folder = Path(sys.argv[1])
n_parties, updates = lloyd.settings(folder)
parts = [lloyd.site(folder, number) for number in range(1, n_parties + 1)]
with open_session(folder, parts, lloyd.start(folder), updates) as (_, session):
    invitations = session.invite()
    run_parties(folder, invitations, session.status().risks)
    rounds = session.status().round
X = np.vstack(parts)
labels = np.concatenate(
    [np.load(folder / f"{slot}.labels.npy") for slot in sorted(invitations)]
)
means = [X[labels == label].mean(axis=0) for label in np.unique(labels)]
lloyd.write(folder, means, rounds)
