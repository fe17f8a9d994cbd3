"""A party that stops for good says so, and the others read it, in both languages."""

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest
from support.analyst_process import Crowd

from clustering_protocols import simulation
from clustering_protocols.common.errors import CoterieError, PartyStopped
from clustering_protocols.protocols.llf.params import LosslessFederated
from clustering_protocols.records import codec
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import SessionState, StopReason
from tests.system.interop.proxy import between
from tests.system.interop.sessions import start_with_entropy

LAYOUT = Layout.lattice(3)
HONEST, FOREIGN, HOMELY = LAYOUT.names
PARTS = simulation.split(np.random.default_rng(0).normal(size=(60, 2)), LAYOUT, seed=1)


def spoil_envelope(path: str, body: bytes) -> bytes:
    """Return the answer of an analyst with one bit of an envelope changed."""
    del path
    try:
        header, arrays = codec.decode(body)
    except CoterieError:
        return body
    if "envelope.0" not in arrays:
        return body
    spoilt = arrays["envelope.0"].copy()
    spoilt[-1] ^= 1
    return codec.encode(header, {**arrays, "envelope.0": spoilt})


def test_a_refusal_in_typescript_ends_the_session_of_all(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    crowd = gather(LosslessFederated(n_clusters=2), PARTS)
    crowd.start(HONEST)
    with between(crowd.analyst.url, spoil_envelope) as url:
        foreign = start_with_entropy(crowd, tmp_path, FOREIGN, at=url)
        with pytest.raises(PartyStopped) as told:
            crowd.party(HOMELY).run(crowd.data[HOMELY])
        _, said = foreign.communicate(timeout=120)
        assert said.splitlines()[-1].partition(":")[0] == "envelope-refused"
        status = crowd.session.status()
        [stopped] = [slot for slot in status.slots if slot.stopped]
        assert (stopped.name, stopped.stopped) == (FOREIGN, StopReason.REFUSED)
        assert status.state is SessionState.FAILED
        assert f"Slot '{FOREIGN}' stopped for good (refused)" in told.value.detail
        assert "envelope" not in (status.detail or "")

        again = start_with_entropy(crowd, tmp_path, FOREIGN, at=url)
        _, said = again.communicate(timeout=120)
        assert "This party has stopped" in said.splitlines()[-1]


def test_a_party_in_typescript_reads_who_stopped_and_why(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    crowd = gather(LosslessFederated(n_clusters=2), PARTS)
    crowd.start(HONEST)
    foreign = start_with_entropy(crowd, tmp_path, FOREIGN)
    with (
        between(crowd.analyst.url, spoil_envelope) as url,
        httpx.Client(base_url=url, timeout=120) as http,
        pytest.raises(Exception, match="envelope"),
    ):
        crowd.party(HOMELY, http).run(crowd.data[HOMELY])
    _, said = foreign.communicate(timeout=120)
    assert foreign.returncode == 1
    *_, last = said.splitlines()
    assert last.startswith(f"party-stopped: Slot '{HOMELY}' stopped for good (refused)")
