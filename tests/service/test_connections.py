"""Connections to PostgreSQL, which all analysts and tools share."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Timer

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from support.databases import limited
from support.in_process import in_process

from analyst_service.storage.database import Database
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

PARTS = simulation.split(np.zeros((4, 2)), Layout.lattice(2), seed=1)


def ask(database: Database) -> int:
    with database.read() as transaction:
        return int(transaction.scalar(sa.text("SELECT 1 FROM pg_sleep(0.01)")) or 0)


@pytest.mark.postgres
def test_a_full_server_is_waited_for(postgres_url: str) -> None:
    with limited(postgres_url, 1) as url:
        other = psycopg.connect(url)
        leaves = Timer(0.5, other.close)
        leaves.start()
        begun = time.monotonic()
        with closing(Database(url)) as database:
            assert ask(database) == 1
        assert time.monotonic() - begun >= 0.4
        leaves.join()


@pytest.mark.postgres
def test_requests_beyond_the_connections_wait_for_an_answer(
    postgres_url: str,
) -> None:
    """Twenty threads of each of two processes, a server that takes three."""
    with (
        limited(postgres_url, 3) as url,
        closing(Database(url, 2)) as one,
        closing(Database(url, 2)) as two,
        ThreadPoolExecutor(40) as threads,
    ):
        answers = list(threads.map(ask, [one, two] * 100))
    assert answers == [1] * 200


@pytest.mark.parametrize("path", ["", "/{id}", "/{id}/audit", "/{id}/receivers"])
def test_more_requests_than_threads_share_two_connections(
    tmp_path: Path, path: str
) -> None:
    """A request that keeps its connection while it waits for a thread stops all."""
    with (
        in_process(tmp_path / "api", database_connections=2) as api,
        ThreadPoolExecutor(60) as threads,
    ):
        session = api.open(Dummy(), PARTS)
        place = "/v1/sessions" + path.format(id=session.id)
        answers = threads.map(lambda _: api.send("GET", place, session.key), range(120))
        assert [answer.status_code for answer in answers] == [200] * 120


def test_refused_invitations_share_two_connections(tmp_path: Path) -> None:
    """What is counted of a refusal is looked up once the refused request has ended."""
    code = {"code": "i" * 43}
    with (
        in_process(tmp_path / "api", database_connections=2) as api,
        ThreadPoolExecutor(60) as threads,
    ):
        place = "/v1/join/preview"
        answers = threads.map(lambda _: api.send("POST", place, json=code), range(120))
        assert [answer.status_code for answer in answers] == [404] * 120


@pytest.mark.postgres
def test_another_refusal_is_told_at_once(postgres_url: str) -> None:
    nobody = sa.make_url(postgres_url).set(username="coterie_nobody")
    begun = time.monotonic()
    with (
        closing(Database(nobody.render_as_string(hide_password=False))) as database,
        pytest.raises(sa.exc.OperationalError),
    ):
        ask(database)
    assert time.monotonic() - begun < 5
