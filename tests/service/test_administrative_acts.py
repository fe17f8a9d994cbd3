"""Who did what to the analyst: a line of the log each, without a secret."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from analyst_service.credentials import Role, create_key, revoke_tokens
from analyst_service.monitoring.administrative_acts import LOGGER
from analyst_service.storage.models import Base
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from party_sdk.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from support.in_process import Api

PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(40, 3)), Layout.lattice(2), seed=1
)
A, B = PARTS.layout.names


def count_rows(api: Api) -> dict[str, int]:
    """How many rows each table has."""
    with api.service.database.read() as transaction:
        return {
            name: transaction.scalar(sa.select(sa.func.count()).select_from(table)) or 0
            for name, table in Base.metadata.tables.items()
        }


@pytest.fixture
def acts(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    """What was logged so far."""
    caplog.set_level(logging.INFO, LOGGER)
    return lambda: [
        {"event": each.message, **vars(each)["fields"]}
        for each in caplog.records
        if each.name == LOGGER
    ]


def test_a_deleted_session_is_logged_with_who_and_no_secret(
    each_api: Api, acts: Callable[[], list[dict[str, Any]]]
) -> None:
    session = each_api.open(Dummy(), PARTS, about={"title": "hush"}).join(A)
    each_api.send("DELETE", session.path, session.key)
    made, deleted = acts()
    assert (made["event"], made["actor"]) == ("key-made", "service")
    assert (made["made_for"], made["role"]) == ("tests", "coordinator")
    assert deleted == {
        "event": "session-deleted",
        "actor": made["key"],
        "label": "tests",
        "session": session.id,
    }
    text = json.dumps(acts())
    secrets = [session.key, *session.tokens.values(), "hush"]
    assert not [secret for secret in secrets if secret in text]


def test_what_is_rolled_back_is_not_logged(
    api: Api, acts: Callable[[], list[dict[str, Any]]]
) -> None:
    def fail() -> None:
        with api.service.database.write() as transaction:
            create_key(transaction, Role.COORDINATOR, "x", 60)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert acts() == []


@pytest.mark.threat(172)
def test_a_flood_of_wrong_tokens_stores_nothing(
    each_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    session = each_api.open(Dummy(), PARTS).join(A)
    each_api.service.database.transact(revoke_tokens, session.id)
    before = count_rows(each_api)
    caplog.set_level(logging.INFO, "coterie")
    caplog.clear()
    for number in range(50):
        each_api.send("GET", "/v1/sessions", f"ck_guess{number}")
        each_api.send("GET", f"{session.path}/task", session.tokens[A])
    assert count_rows(each_api) == before
    lines = [vars(each)["fields"] for each in caplog.records]
    assert [line["problem"] for line in lines] == ["unauthenticated"] * 100
    callers = {line["caller"] for line in lines}
    assert len(callers) == 2  # nobody, and the token that counted once
    assert None in callers
    text = json.dumps(lines)
    assert "guess" not in text
    assert session.tokens[A] not in text


def test_refused_invitations_are_logged_with_their_place(
    each_api: Api, acts: Callable[[], list[dict[str, Any]]]
) -> None:
    session = each_api.open(Dummy(), PARTS)
    spent = session.codes[A]
    session.join(A)
    forged = session.joining(B)
    forged["proof"] = "00" * 64
    decline = {"code": spent, "state": "declined", "reason": "no"}
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "not-found": ("/v1/join/preview", {"code": "x" * 32}),
        "invitation-used": ("/v1/join/decline", decline),
        "key-not-authentic": ("/v1/join", forged),
    }
    for reason, (path, body) in asked.items():
        refused = each_api.send("POST", path, json=body)
        assert refused.json()["type"].endswith(reason)
    session.invite(B)
    ended = each_api.send("POST", "/v1/join/preview", json={"code": forged["code"]})
    assert ended.json()["type"].endswith("invitation-expired")
    refusals = [each for each in acts() if each["actor"] == "stranger"]
    assert {each["event"] for each in refusals} == {"invitation-refused"}
    places = {e["reason"]: (e.get("session"), e.get("slot")) for e in refusals}
    assert places == {
        "not-found": (None, None),
        "invitation-used": (session.id, A),
        "key-not-authentic": (session.id, B),
        "invitation-expired": (session.id, B),
    }
    text = json.dumps(refusals)
    assert not [code for code in (spent, forged["code"]) if code in text]


def test_commands_write_their_acts_to_stderr_under_the_login(tmp_path: Path) -> None:
    def run(*words: str) -> Result:
        here = {"COTERIE_DATA_DIR": str(tmp_path / "data")}
        return CliRunner().invoke(main, words, env=here, catch_exceptions=False)

    def lines(result: Result) -> list[dict[str, Any]]:
        written = result.stderr.splitlines()
        return [json.loads(line) for line in written if line.startswith("{")]

    run("migrate")
    made = run("key", "create", "--label", "ward", "--json")
    key = json.loads(made.stdout)
    [act] = lines(made)
    assert (act["message"], act["actor"]) == ("key-made", "command")
    assert (act["key"], act["made_for"]) == (key["id"], "ward")
    assert act["label"]
    assert act["time"]
    assert key["key"] not in made.stderr
    [rotated] = lines(run("key", "rotate", key["id"]))
    [revoked] = lines(run("key", "revoke", key["id"]))
    assert (rotated["message"], revoked["message"]) == ("key-rotated", "key-revoked")
