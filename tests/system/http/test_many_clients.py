"""More clients of several analysts than their database has connections."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from support.databases import Databases, limited
from support.repeats import on_command

from tests.system.http.several import fleet

N_CLIENTS, N_REQUESTS, N_CONNECTIONS = 180, 25, 40
SETTINGS = {
    "COTERIE_REQUESTS_PER_SECOND": "100000",
    "COTERIE_MAX_REQUESTS": "10000",
}

pytestmark = [*on_command("crowds of clients"), pytest.mark.postgres]


def test_no_client_of_three_analysts_is_turned_away(
    databases: Databases, tmp_path: Path
) -> None:
    """They would take sixty connections; the server gives them forty."""
    (tmp_path / "objects").mkdir()
    store = (tmp_path / "objects").as_uri()
    with (
        databases.current("postgresql", tmp_path) as url,
        limited(url, N_CONNECTIONS) as narrow,
    ):
        allow_all(url, narrow)
        with (
            fleet(tmp_path, narrow, store, environment=SETTINGS) as running,
            ExitStack() as opened,
            ThreadPoolExecutor(N_CLIENTS) as threads,
        ):
            key = {"Authorization": f"Bearer {running.key}"}
            clients = [
                opened.enter_context(
                    httpx.Client(base_url=there.url, headers=key, timeout=120)
                )
                for there in running.analysts
                for _ in range(N_CLIENTS // len(running.analysts))
            ]
            answers = sum(threads.map(ask, clients), Counter[int]())
        take_back(url, narrow)
    assert answers == {200: N_CLIENTS * N_REQUESTS}


def ask(client: httpx.Client) -> Counter[int]:
    """Return how often each status came."""
    return Counter(client.get("/v1/sessions").status_code for _ in range(N_REQUESTS))


def allow_all(url: str, narrow: str) -> None:
    """Let the role of a narrow address use what ours owns."""
    _change(url, narrow, "GRANT {ours} TO {role}")


def take_back(url: str, narrow: str) -> None:
    _change(url, narrow, "REVOKE {ours} FROM {role}")


def _change(url: str, narrow: str, statement: str) -> None:
    role = sql.Identifier(sa.make_url(narrow).username or "")
    with psycopg.connect(url, autocommit=True) as server:
        ours = sql.Identifier(server.info.user)
        server.execute(sql.SQL(statement).format(ours=ours, role=role))  # type: ignore[arg-type]  # of this file
