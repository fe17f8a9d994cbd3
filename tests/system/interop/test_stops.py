"""A party that stops for good says so, and the others read it, in both languages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.analyst_process import Crowd

from clustering_protocols.common.errors import PartyStopped
from clustering_protocols.protocols.llf.params import LosslessFederated
from clustering_protocols.wire.states import SessionState, StopReason
from tests.system.interop.proxy import between
from tests.system.interop.sessions import start_with_entropy
from tests.system.interop.test_lies import FOREIGN, HOMELY, HONEST, LIES, PARTS, join


def test_a_refusal_in_typescript_ends_the_session_of_all(
    gather: Callable[..., Crowd], tmp_path: Path
) -> None:
    crowd = gather(LosslessFederated(n_clusters=2), PARTS)
    change, problem = LIES["envelope"]
    crowd.start(HONEST)
    with between(crowd.analyst.url, change) as url:
        foreign = start_with_entropy(crowd, tmp_path, FOREIGN, at=url)
        with (
            join(crowd, HOMELY, crowd.analyst.url) as party,
            pytest.raises(PartyStopped) as told,
        ):
            party.run(crowd.data[HOMELY])
        _, said = foreign.communicate(timeout=120)
        assert said.splitlines()[-1].partition(":")[0] == problem
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
    change, _ = LIES["envelope"]
    crowd.start(HONEST)
    foreign = start_with_entropy(crowd, tmp_path, FOREIGN)
    with (
        between(crowd.analyst.url, change) as url,
        join(crowd, HOMELY, url) as party,
        pytest.raises(Exception, match="envelope"),
    ):
        party.run(crowd.data[HOMELY])
    _, said = foreign.communicate(timeout=120)
    assert foreign.returncode == 1
    *_, last = said.splitlines()
    assert last.startswith(f"party-stopped: Slot '{HOMELY}' stopped for good (refused)")
