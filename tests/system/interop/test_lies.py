"""What is changed on its way is refused alike by parties in TypeScript and in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.analyst_process import Crowd

from clustering_protocols import simulation
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.protocols.llf.params import LosslessFederated
from clustering_protocols.records import codec
from clustering_protocols.terms.terms import Layout
from coterie import Party, Policy
from party_sdk.analyst_client.http_analyst import connect
from tests.system.interop.proxy import Change, between, is_stop
from tests.system.interop.sessions import start_with_entropy

LAYOUT = Layout.lattice(3)
HONEST, FOREIGN, HOMELY = LAYOUT.names
PARTS = simulation.split(np.random.default_rng(0).normal(size=(60, 2)), LAYOUT, seed=1)


def packet_with(change: Callable[[dict, dict], None], needed: str) -> Change:
    def changed(path: str, body: bytes) -> bytes:
        del path
        try:
            header, arrays = codec.decode(body)
        except CoterieError:
            return body
        if needed not in arrays:
            return body
        arrays = {name: array.copy() for name, array in arrays.items()}
        change(header, arrays)
        return codec.encode(header, arrays)

    return changed


def flip(name: str) -> Callable[[dict, dict], None]:
    def change(header: dict, arrays: dict) -> None:
        del header
        arrays[name].reshape(-1)[-1] ^= 1

    return change


def bend_total(place: int) -> Callable[[dict, dict], None]:
    """Return a total in which a word, or the tag, of a share is another one."""

    def change(header: dict, arrays: dict) -> None:
        del header
        said, own = codec.decode(arrays["own"].tobytes())
        totals = own["totals"].copy()
        totals[-1:, place] ^= np.uint64(1)
        bent = codec.encode(said, {**own, "totals": totals})
        arrays["own"] = np.frombuffer(bent, np.uint8)

    return change


def tell_others(header: dict, arrays: dict) -> None:
    """Tell all groups of a digest that nobody has."""
    del header
    *lines, last = bytes(arrays["transcript.lines"]).decode().split("\n")
    said = json.loads(last)
    said["told"] = ["0" * 64 for _ in said.get("told", ())]
    text = "\n".join([*lines, json.dumps(said, separators=(",", ":"))])
    arrays["transcript.lines"] = np.frombuffer(text.encode(), np.uint8)


def forge_mark(path: str, body: bytes) -> bytes:
    if not path.endswith("/agreement"):
        return body
    agreement = json.loads(body)
    first = agreement["roster"][0]
    return body.replace(first["mark"].encode(), b"0" * 64)


LIES: dict[str, tuple[Change, str]] = {
    "mark": (forge_mark, "key-not-authentic"),
    "signature": (
        packet_with(flip("transcript.signatures"), "transcript.signatures"),
        "protocol-failed",
    ),
    "envelope": (packet_with(flip("envelope.0"), "envelope.0"), "envelope-refused"),
    "mask": (packet_with(bend_total(0), "own"), "protocol-failed"),
    "tag": (packet_with(bend_total(-1), "own"), "protocol-failed"),
    "digests": (packet_with(tell_others, "transcript.lines"), "task-refused"),
}


@pytest.mark.parametrize("lie", LIES)
def test_both_stop_with_the_same_problem(
    gather: Callable[..., Crowd], tmp_path: Path, lie: str
) -> None:
    change, problem = LIES[lie]
    crowd = gather(LosslessFederated(n_clusters=2), PARTS)
    crowd.start(HONEST)
    with between(crowd.analyst.url, change, hide=is_stop) as url:
        foreign = start_with_entropy(crowd, tmp_path, FOREIGN, at=url)
        try:
            with (
                join(crowd, HOMELY, url) as party,
                pytest.raises(CoterieError) as refused,
            ):
                party.run(crowd.data[HOMELY])
            _, said = foreign.communicate(timeout=120)
        finally:
            foreign.kill()
            foreign.communicate()
    assert refused.value.problem.slug == problem
    assert foreign.returncode == 1
    assert said.splitlines()[-1].partition(":")[0] == problem


def join(crowd: Crowd, slot: str, url: str) -> Party:
    accepted = frozenset(crowd.session.status().risks)
    return Party.join(
        crowd.invitations[slot],
        policy=Policy(accepted_risks=accepted, least_known=0, minimum_rows=1),
        home=crowd.home_of(slot),
        entropy=crowd.keys[slot],
        analyst=connect(url, patience=120),
    )
