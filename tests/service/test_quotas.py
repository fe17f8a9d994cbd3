"""Quotas: what one coordinator may take, and that others notice nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
from support.databases import BOTH_DATABASES, Databases
from support.in_process import in_process

from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

if TYPE_CHECKING:
    from support.in_process import Api

StartApi = Callable[..., AbstractContextManager["Api"]]
PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(40, 3)), Layout.lattice(2), seed=1
)
A, B = PARTS.layout.names
QUOTA = 700  # bytes: one contribution fits, two do not


def refused(answer: httpx.Response) -> str:
    """The sentence with which a quota refuses."""
    assert answer.status_code == 403, answer.text
    assert answer.json()["type"] == Problem.QUOTA_REACHED.urn
    detail: str = answer.json()["detail"]
    return detail


@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_a_coordinator_opens_as_many_sessions_as_its_quota_says(
    kind: str, databases: Databases, tmp_path: Any
) -> None:
    with (
        databases.current(kind, tmp_path) as url,
        in_process(tmp_path / "api", url, quota_sessions=2) as api,
    ):
        first = api.open(Dummy(), PARTS)

        def put(name: str, key: str = first.key) -> httpx.Response:
            return api.send("PUT", f"/v1/sessions/{name}", key, json=first.terms)

        assert put("s-second").status_code == 201
        assert refused(put("s-third")) == (
            "This key has 2 open sessions; its quota is 2."
        )
        assert put("s-second").status_code == 200  # a repeat opens nothing
        assert put("s-third", api.key()).status_code == 201  # another's is another's
        api.send("POST", "/v1/sessions/s-second/cancel", first.key)
        assert put("s-third").status_code == 201


@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_an_upload_over_the_quota_is_refused_without_a_trace(
    kind: str, databases: Databases, tmp_path: Any
) -> None:
    with (
        databases.current(kind, tmp_path) as url,
        in_process(tmp_path / "api", url, quota_bytes=QUOTA) as api,
    ):
        session, other = (api.open(Dummy(), PARTS).join() for _ in range(2))
        content = {slot: session.reply(slot) for slot in (A, B)}
        assert session.put(A, content[A]).status_code == 201
        before = api.stored()
        assert refused(session.put(B, content[B])) == (
            f"The open sessions of this coordinator hold {len(content[A])} bytes; "
            f"{len(content[B])} more do not fit into the quota of {QUOTA}."
        )
        assert api.stored() == before
        # a repeat of what is stored, and other coordinators, meet no quota
        assert session.put(A, content[A]).status_code == 200
        assert other.put(B, other.reply(B)).status_code == 201


def test_simultaneous_uploads_cannot_exceed_the_quota(
    start_api: StartApi,
) -> None:
    with start_api(quota_bytes=QUOTA) as api:
        session = api.open(Dummy(), PARTS).join()
        content = {slot: session.reply(slot) for slot in (A, B)}
        with ThreadPoolExecutor(2) as threads:
            answers = threads.map(
                lambda slot: session.put(slot, content[slot]), content
            )
        assert sorted(answer.status_code for answer in answers) == [201, 403]
