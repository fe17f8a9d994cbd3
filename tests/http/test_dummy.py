"""The dummy through everything: the shape of the house, before any real protocol."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest
from support import warm
from support.analyst_process import COTERIE, Analyst, Crowd, LossyTransport, wait_for
from support.databases import on_both_databases

from clustering_protocols import simulation
from clustering_protocols.common.errors import Cancelled, InvitationUsed, ProtocolFailed
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(2, 2)
X = np.random.default_rng(0).normal(size=(40, 6))
PARTS = simulation.split(X, LAYOUT, seed=1)


Gather = Callable[..., Crowd]

pytestmark = on_both_databases


@pytest.mark.every_python
@pytest.mark.parametrize("void_attempts", [0, 2])
def test_http_gives_the_labels_of_the_simulation(
    gather: Gather, void_attempts: int
) -> None:
    params = Dummy(n_clusters=3, void_attempts=void_attempts)
    crowd = gather(params, PARTS)
    crowd.start()
    assert crowd.labels() == crowd.expected()
    assert crowd.session.status().state == "completed"
    assert crowd.session.summary().values == {"total": 40}


def test_a_lost_join_response_is_repeated_and_succeeds(
    analyst: Analyst, gather: Gather
) -> None:
    crowd = gather(Dummy(), PARTS)
    lossy = LossyTransport("/v1/join")
    http = httpx.Client(base_url=analyst.url, transport=lossy)
    crowd.party("r1c1", http).enrol(PARTS.data["r1c1"])
    assert lossy.lost == 1
    crowd.start()
    assert crowd.labels() == crowd.expected()


def test_a_token_that_is_no_longer_valid_is_replaced_by_the_key(gather: Gather) -> None:
    crowd = gather(Dummy(), PARTS)
    party = crowd.party("r1c1")
    party.enrol(PARTS.data["r1c1"])
    kept = party.folder.load_identity()
    expired = kept.model_copy(update={"token": "pt_expired"})
    party.folder.save_identity(expired)
    crowd.start()
    assert crowd.labels() == crowd.expected()
    assert party.folder.load_identity().token not in {None, "pt_expired"}


def test_a_used_invitation_refuses_other_keys(gather: Gather) -> None:
    crowd = gather(Dummy(), PARTS)
    crowd.party("r1c1").enrol(PARTS.data["r1c1"])
    crowd.home = crowd.home / "elsewhere"
    crowd.keys["r1c1"] = bytes(32)
    with pytest.raises(InvitationUsed):
        crowd.party("r1c1").enrol(PARTS.data["r1c1"])


def test_a_lost_receipt_is_asked_for_again(analyst: Analyst, gather: Gather) -> None:
    crowd = gather(Dummy(), PARTS)
    crowd.start("r1c2", "r2c1", "r2c2")
    http = httpx.Client(
        base_url=analyst.url, transport=LossyTransport("/contribution", times=3)
    )
    party = crowd.party("r1c1", http)
    crowd.results["r1c1"] = party.run(PARTS.data["r1c1"])
    assert crowd.labels() == crowd.expected()


def test_the_analyst_is_killed_while_collecting(
    analyst: Analyst, gather: Gather
) -> None:
    crowd = gather(Dummy(void_attempts=1), PARTS)
    crowd.party("r2c2").enrol(PARTS.data["r2c2"])
    crowd.start("r1c1", "r1c2", "r2c1")
    wait_for(lambda: crowd.session.status().awaited_slots == ["r2c2"])
    assert crowd.session.status().state == "collecting"
    analyst.kill(signal.SIGKILL)
    analyst.start()
    crowd.start("r2c2")
    assert crowd.labels() == crowd.expected()


def test_a_party_is_killed_and_resumes(gather: Gather, tmp_path: Path) -> None:
    crowd = gather(Dummy(), PARTS)
    data = tmp_path / "rows.csv"
    rows = np.vstack(list(PARTS.data["r1c1"].batches()))
    header = ",".join(["id", *PARTS.data["r1c1"].columns])
    ids = PARTS.data["r1c1"].ids or ()
    lines = [
        f"{i},{','.join(map(repr, row.tolist()))}"
        for i, row in zip(ids, rows, strict=True)
    ]
    data.write_text("\n".join([header, *lines]))
    out = tmp_path / "labels.csv"
    key_file = tmp_path / "entropy"
    key_file.write_text(crowd.keys["r1c1"].hex())
    common = [
        "--data",
        str(data),
        "--id-column",
        "id",
        "--home",
        str(crowd.home),
        "--labels",
    ]
    common += [str(out), "--accept-risk", "dummy.row-count-is-known"]
    common += ["--accept-risk", "house.open-slot", "--guard", "least_known=0"]
    entropy = ["--entropy-file", str(key_file)]
    run = [
        *warm.command(COTERIE),
        "party",
        "run",
        crowd.invitations["r1c1"],
        *common,
        *entropy,
    ]
    process = subprocess.Popen(
        run, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    wait_for(lambda: any(s.joined_at for s in crowd.session.status().slots))
    process.kill()
    process.wait()
    crowd.start("r1c2", "r2c1", "r2c2")
    resume = [
        *warm.command(COTERIE),
        "party",
        "run",
        crowd.session.id,
        "r1c1",
        *common,
    ]
    subprocess.run(resume, check=True, capture_output=True)
    written = [int(line.split(",")[1]) for line in out.read_text().splitlines()[1:]]
    assert {**crowd.labels(), "r1c1": written} == crowd.expected()


def test_a_failed_step_ends_the_session_with_its_reason(gather: Gather) -> None:
    crowd = gather(Dummy(fail_at="confirm"), PARTS)
    crowd.start()
    with pytest.raises(ProtocolFailed, match="confirm"):
        crowd.join()
    assert crowd.session.status().reason == "protocol-failed"


def test_a_cancelled_session_tells_its_parties(gather: Gather) -> None:
    crowd = gather(Dummy(), PARTS)
    crowd.start("r1c1")
    wait_for(lambda: any(s.joined_at for s in crowd.session.status().slots))
    crowd.session.cancel()
    assert crowd.session.cancel().state == "cancelled"
    with pytest.raises(Cancelled):
        crowd.join()
