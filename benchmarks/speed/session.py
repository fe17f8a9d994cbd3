"""Runs one session, all of whose processes start with it; prints its costs as JSON.

    python -m benchmarks.speed.session over-http|simulated llf|dc ROWS COLUMNS

Ten parties share rows of thirty blobs; ten clusters. `llf` starts at given rows, with
twenty updates. Nothing is imported that an older checkout lacks: the packages may be
those of one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

N_PARTIES: Final = 10
N_CLUSTERS: Final = 10
N_UPDATES: Final = 20


def draw_rows(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    """Return rows (n, m) of blobs, and the ten (k, m) to start from."""
    from sklearn.datasets import make_blobs

    X, _ = make_blobs(n_rows, n_columns, centers=30, cluster_std=4.0, random_state=0)
    return X, X[np.random.default_rng(0).choice(n_rows, N_CLUSTERS, replace=False)]


def main(way: str, protocol: str, n_rows: str, n_columns: str) -> None:
    """Print the costs of one session."""
    X, start = draw_rows(int(n_rows), int(n_columns))
    params = _params(protocol, start)
    measured = {"over-http": _over_http, "simulated": _simulated}[way](params, X)
    print(json.dumps(measured))


def _params(protocol: str, start: Any) -> Any:
    if protocol == "dc":
        from clustering_protocols.protocols.dc import DataCollaboration

        return DataCollaboration(n_clusters=N_CLUSTERS, dimensions="all_but_one")
    from clustering_protocols.protocols.llf import LosslessFederated

    return LosslessFederated(
        n_clusters=N_CLUSTERS,
        scaling="none",
        init="given",
        initial_centroids=tuple(tuple(map(float, row)) for row in start),
        max_iter=N_UPDATES,
        tol=0,
    )


def _simulated(params: Any, X: Any) -> dict[str, float]:
    from clustering_protocols import simulation
    from clustering_protocols.numerics.data_source import MatrixSource
    from clustering_protocols.terms.terms import Layout

    layout = Layout.lattice(N_PARTIES, 1)
    parts = zip(layout.names, np.array_split(X, N_PARTIES), strict=True)
    data = {slot: MatrixSource(part) for slot, part in parts}
    begin = time.process_time()
    run = simulation.run(params, layout, data, 0)
    return {
        "cpu": time.process_time() - begin,
        "bytes": sum(cost.sent_bytes for cost in run.costs.values()),
    }


def _over_http(params: Any, X: Any) -> dict[str, float]:
    from benchmarks.speed.analyst_process import open_session
    from benchmarks.speed.figures import children_seconds

    with tempfile.TemporaryDirectory() as name:
        folder, parts = Path(name), np.array_split(X, N_PARTIES)
        with open_session(folder, params, parts) as (analyst, session):
            invitations, risks = session.invite(), session.status().risks
            served = sum(analyst.processor_seconds())
            used, begin = children_seconds(), time.perf_counter()
            reports = _run_parties(folder, invitations, list(risks))
            wall = time.perf_counter() - begin
            rounds, parties = session.status().round, children_seconds() - used
            served = sum(analyst.processor_seconds()) - served
    return {
        "wall": wall,
        "cpu": parties + served,
        "beside rows": median(party["beside rows"] for party in reports),
        "memory": max(party["memory"] for party in reports),
        "answer": served / rounds / N_PARTIES,
    }


def _run_parties(
    folder: Path, invitations: dict[str, str], risks: list[str]
) -> list[dict[str, float]]:
    """Return what each party reports, once the session is over."""
    parties = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                __spec__.name,
                str(folder),
                slot,
                invitation,
                *risks,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for slot, invitation in invitations.items()
    ]
    return [json.loads(party.communicate()[0]) for party in parties]


def take_part(folder: Path, slot: str, invitation: str, risks: list[str]) -> None:
    """Run one of the parties; print what it took.

    ``beside rows``: median CPU seconds between two answers, which skips those in
    which something is imported. ``memory``: the largest resident memory, MiB.
    """
    from clustering_protocols.engine import PartyEngine
    from party_sdk.home.policy import Policy
    from party_sdk.party.participant import Party
    from party_sdk.tables import open_table

    reply, begun, ended = PartyEngine.reply, list[float](), list[float]()

    def timed(*arguments: Any, **options: Any) -> Any:
        begun.append(time.process_time())
        outcome = reply(*arguments, **options)
        ended.append(time.process_time())
        return outcome

    PartyEngine.reply = timed  # type: ignore[method-assign]  # times it
    policy = Policy(accepted_risks=frozenset(risks), least_known=0)
    data = open_table(folder / f"{slot}.parquet")
    # in a small table, few rows are near a given start
    choices = {"allow_given_start": True}
    here: Any = {"policy": policy, "home": folder / slot, "choices": choices}
    with Party.join(invitation, **here) as party:
        party.enrol(data)
        party.run(data)
    beside = median(
        end - begin for end, begin in zip(begun[1:], ended[:-1], strict=True)
    )
    # not `ru_maxrss`, which starts from the memory of the process that started this one
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    memory = int(peak) / 1024
    print(json.dumps({"beside rows": beside, "memory": memory}))


if __name__ == "__main__":
    if sys.argv[1] in {"over-http", "simulated"}:
        main(*sys.argv[1:])
    else:
        from party_sdk.home.process_exit import run_without_finalisation

        slot, invitation, *risks = sys.argv[2:]
        run_without_finalisation(  # as `coterie` does
            lambda: take_part(Path(sys.argv[1]), slot, invitation, risks)
        )
