"""A party in TypeScript continues after kill -9, and after a line that was cut."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from support.analyst_process import Crowd

from clustering_protocols import simulation
from clustering_protocols.protocols.llf.params import LosslessFederated
from clustering_protocols.terms.terms import Layout
from tests.system.interop.proxy import between
from tests.system.interop.sessions import finish, start_with_entropy

LAYOUT = Layout.lattice(3)
LEADER, *OTHERS = LAYOUT.names
LLF = LosslessFederated(n_clusters=3)
ROWS = np.random.default_rng(0).normal(size=(90, 3))
PARTS = simulation.split(ROWS, LAYOUT, seed=1)


def kill_in_round(process: subprocess.Popen[str], round_: int) -> None:
    """Kill a party once the answer to a round lies on its disk."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"Round {round_}:"):
            break
    process.kill()
    process.communicate(timeout=30)


def test_a_party_that_was_killed_goes_on_where_it_was(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    crowd = gather(LLF, PARTS)
    crowd.start(*OTHERS)
    for round_ in (1, 2, 7, 11):  # opening, secrets, the sums of moments, updates
        kill_in_round(start_with_entropy(crowd, tmp_path, LEADER), round_)
    labels = finish(start_with_entropy(crowd, tmp_path, LEADER), tmp_path / LEADER)
    assert crowd.labels() | {LEADER: labels} == crowd.expected()


def test_a_contribution_whose_line_was_cut_is_sent_again(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    crowd = gather(LLF, PARTS)
    crowd.start(*OTHERS)
    seen: list[str] = []

    def cut(method: str, path: str) -> bool:
        if method != "PUT":
            return False
        seen.append(path)
        return len(seen) == 1

    with between(crowd.analyst.url, cut=cut) as url:
        party = start_with_entropy(crowd, tmp_path, LEADER, at=url)
        labels = finish(party, tmp_path / LEADER)
    assert crowd.labels() | {LEADER: labels} == crowd.expected()
    assert len(seen) == len(set(seen)) + 1
