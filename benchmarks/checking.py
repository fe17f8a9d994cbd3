"""What it costs that parties check: tags, transcript and signatures, in whole rounds.

    python -m benchmarks.checking

Sessions of `llf`, `fccm` and `dc` by simulation, every party with its folder on disk. Each
figure is a ratio of one run: everything, against everything without the checks.

bytes    all that travels, against all but tags, lines of the transcript, signatures and
         the two rounds in which parties sign (goal: at most 1.1).
time     processor time of all roles with packets, envelopes and disk, against the same
         without making and checking tags, lines and signatures (goal: at most 1.2).
rounds   more than the protocol's own (goal: at most 2).

Ends with 1 if a goal is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from clustering_protocols import engine, simulation
from clustering_protocols.contract import Params
from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.engine.journal import Journal
from clustering_protocols.engine.packets import SIGNATURE_BYTES
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.fccm import CoClustering
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.secrecy import tags
from clustering_protocols.terms.terms import Layout
from party_sdk.party.durable_state import AnsweredRound, DurableState
from party_sdk.party.folder import PartyFolder

BYTES_GOAL, TIME_GOAL, ROUNDS_GOAL = 1.1, 1.2, 2
CHECKS: list[tuple[Any, str]] = [
    (tags, "tag"),
    (tags, "shift_residue"),
    (transcript, "follow"),
    (transcript, "group_digests"),
    (transcript, "append_attempt"),
    (transcript, "last"),
    (packets, "digest_of"),
    (signatures, "collect"),
    (signatures, "check"),
    (signatures.Signer, "reply"),
    (Journal, "append_entries"),
]
"""What a session without checks would not call; none of them calls another."""


class Setting(NamedTuple):
    """One session."""

    name: str
    params: Params
    layout: Layout
    X: Any


def settings() -> Iterator[Setting]:
    """Yield the sessions; sizes are those of whole tables, not of examples."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40_000, 20)) + rng.integers(0, 4, size=(40_000, 1)) * 6.0
    llf = LosslessFederated(n_clusters=5, max_iter=20, tol=0)
    yield Setting("llf, 40,000 × 20, rows of 4", llf, Layout.lattice(4), rows)
    counts = rng.poisson(0.3, size=(4_000, 400)).astype(np.float64).clip(0, 5)
    fccm = CoClustering(
        n_clusters=5, lambda_u=0.1, lambda_w=100.0, r_max=5, n_init=1, max_iter=8
    )
    yield Setting("fccm, 4,000 × 400, columns of 4", fccm, Layout.lattice(1, 4), counts)
    dc = DataCollaboration(n_clusters=4)
    yield Setting("dc, 40,000 × 20, rows of 4", dc, Layout.lattice(4), rows)


class OnDisk(simulation.Session):
    """A session whose parties keep their answers before they send them."""

    def __init__(self, home: Path, setting: Setting) -> None:
        data = simulation.split(setting.X, setting.layout, 0).data
        self.folders = {
            slot: PartyFolder(home, "s", slot) for slot in setting.layout.names
        }
        for folder in self.folders.values():
            folder.path.mkdir(parents=True)
        super().__init__(setting.params, setting.layout, data, 0)

    def ask(self, slot: str, task: bytes) -> engine.TaskOutcome:
        """Tell a party a task; keep its answer."""
        before = self.memories[slot]
        answer = super().ask(slot, task)
        folder = self.folders[slot]
        standing = DurableState(
            turn=folder.load_standing().turn + 1,
            answered=AnsweredRound(before=before, after=answer.memory),
            journal=answer.journal,
            contribution=answer.contribution,
        )
        folder.save_standing(standing)
        return answer


@contextmanager
def timed(spent: list[float]) -> Iterator[None]:
    """Add up the processor time of the checks that are called inside."""
    with ExitStack() as stack:
        for owner, name in CHECKS:
            stack.enter_context(
                mock.patch.object(owner, name, _timed(getattr(owner, name), spent))
            )
        yield


def _timed(call: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    def measured(*args: Any, **more: Any) -> Any:
        begin = time.process_time()
        try:
            return call(*args, **more)
        finally:
            spent[0] += time.process_time() - begin

    return measured


def checking_bytes(payload: bytes) -> int:
    """Return how many bytes of a message are there for the checks."""
    packet = packets.read(payload)
    if packet.address.stage in {signatures.OPENING, signatures.CLOSING}:
        return len(payload)
    lines = len("\n".join(packet.history).encode())
    words = packet.arrays.get("words", packet.arrays.get("total"))
    tagged = 8 if words is not None and len(words) else 0
    return lines + len(packet.signatures) * SIGNATURE_BYTES + tagged


def measured(setting: Setting) -> bool:
    """Print the ratios of a session; return whether the goals are met."""
    small = simulation.split(setting.X[:400], setting.layout, 0)
    simulation.run(setting.params, small.layout, small.data, 0)  # compiled now
    spent = [0.0]
    with TemporaryDirectory() as home, timed(spent):
        session = OnDisk(Path(home), setting)
        begin, spent[0] = time.process_time(), 0.0
        run = session.to_the_end()
        total = time.process_time() - begin
    sizes = [len(sent.payload) for sent in run.sent]
    checks = sum(checking_bytes(sent.payload) for sent in run.sent)
    in_bytes = sum(sizes) / (sum(sizes) - checks)
    in_time = total / (total - spent[0])
    signed = {signatures.OPENING, signatures.CLOSING}
    more = len({s.round for s in run.sent if _stage(s.payload) in signed})
    print(
        f"{setting.name}: bytes {in_bytes:.3f} × (goal {BYTES_GOAL}), "
        f"time {in_time:.3f} × (goal {TIME_GOAL}), {run.rounds} rounds, of which "
        f"{more} are signed (goal {ROUNDS_GOAL})"
    )
    return in_bytes <= BYTES_GOAL and in_time <= TIME_GOAL and more <= ROUNDS_GOAL


def _stage(payload: bytes) -> str:
    return packets.read(payload).address.stage


def main() -> None:
    """Print the ratios of all sessions."""
    met = [measured(setting) for setting in settings()]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
