"""Three analysts over one database, one of them on a machine whose clock is wrong."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from support.analyst_process import Crowd
from support.databases import Databases
from support.repeats import on_command
from support.warm import with_constants

from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from tests.system.http.several import LAYOUT, PARTS, assert_whole, fleet

pytestmark = on_command("analysts with wrong clocks")
MINUTE = 60
PROTOCOLS: tuple[Params, ...] = (
    DataCollaboration(n_clusters=3, dimensions="all_but_one"),
    Dummy(n_clusters=3),
    LosslessFederated(
        n_clusters=2, max_iter=4, small_cohorts="allow", allow_two_parties=True
    ),
)
SKEWS = (-120 * MINUTE, -10 * MINUTE, -20, 20, MINUTE, 10 * MINUTE, 120 * MINUTE)


@pytest.mark.postgres
@pytest.mark.threat(62)
@pytest.mark.parametrize("lease", [3, 15], ids="lease {} s".format)
@pytest.mark.parametrize("skew", SKEWS, ids="{:+} s".format)
def test_a_wrong_clock_of_one_analyst_ends_no_session(
    databases: Databases, tmp_path: Path, session_id: str, skew: int, lease: int
) -> None:
    (tmp_path / "objects").mkdir()
    settings = {
        **with_constants(
            {
                "analyst_service.process_context.LEASE_SECONDS": lease,
                "analyst_service.sessions.retention.SWEEP_SECONDS": 0.3,
            }
        ),
        "COTERIE_CACHE_BYTES": "0",
    }
    store = (tmp_path / "objects").as_uri()
    with (
        databases.current("postgresql", tmp_path) as url,
        fleet(tmp_path, url, store, environment=settings, skew=skew) as running,
    ):
        crowds = [
            Crowd(
                running,
                tmp_path / f"home-{number}",
                params,
                LAYOUT,
                PARTS.data,
                session=f"{session_id}-{number}",
            )
            for number, params in enumerate(PROTOCOLS * 2)
        ]
        for crowd in crowds:
            crowd.start()
        for crowd in crowds:
            assert_whole(crowd)
            crowd.close()
        refusal = httpx.get(f"{running.analysts[1].url}/readyz", timeout=60)
        assert refusal.status_code == 503
        assert "clock" in refusal.json()["detail"]
        assert (
            httpx.get(f"{running.analysts[0].url}/readyz", timeout=60).status_code
            == 200
        )
