"""A revoked party stays out, and a join that somebody recorded counts once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from support.analyst_process import wait_for

from analyst_service.storage.models import Credential
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from party_sdk.cli import main
from tests.service.raw_requests import start

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PARTS.layout.names
Run = Callable[..., Result]


@pytest.fixture
def run(each_api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of the administrator beside the service."""
    settings = each_api.service.settings
    monkeypatch.setenv("COTERIE_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("COTERIE_DATABASE_URL", settings.database_url)
    monkeypatch.setattr(
        "analyst_service.storage.database.SystemClock", lambda: each_api.clock
    )
    return lambda *words: CliRunner().invoke(main, words)


def problem_of(response: httpx.Response) -> Problem:
    return Problem.of_slug(response.json()["type"])


def tokens(api: Api, slot: str) -> list[str]:
    """The ids of a slot's tokens."""
    with api.service.database.read() as transaction:
        query = sa.select(Credential.id).where(Credential.slot == slot)
        return list(transaction.scalars(query))


def revoke(run: Run, api: Api, session: ByHand, how: str) -> None:
    words = ("--session", session.id) if how == "all" else (tokens(api, A)[0],)
    done = run("key", "revoke", *words)
    assert done.exit_code == 0, done.output


@pytest.mark.threat(29)
@pytest.mark.parametrize("how", ["all", "one"])
def test_a_revoked_party_does_not_come_back_by_joining(
    each_api: Api, run: Run, how: str
) -> None:
    session = each_api.open(Dummy(), PARTS)
    recorded = session.joining(A)
    session.join()
    again = session.joining(A)
    revoke(run, each_api, session, how)
    assert session.task(A).status_code == 401
    for body in (recorded, again):
        refused = each_api.send("POST", "/v1/join", json=body)
        assert problem_of(refused) is Problem.INVITATION_EXPIRED
    previewed = each_api.send(
        "POST", "/v1/join/preview", json={"code": session.codes[A]}
    )
    assert problem_of(previewed) is Problem.INVITATION_EXPIRED
    assert session.task(B).status_code == (401 if how == "all" else 200)


def test_every_token_of_a_revoked_slot_ends_with_it(each_api: Api, run: Run) -> None:
    session = each_api.open(Dummy(), PARTS).join()
    earlier = session.tokens[A]
    session.join(A)
    assert len(tokens(each_api, A)) == 2
    revoke(run, each_api, session, "one")
    for token in (earlier, session.tokens[A]):
        path = f"{session.path}/task"
        assert each_api.send("GET", path, token).status_code == 401


def test_the_audit_says_who_was_revoked(each_api: Api, run: Run) -> None:
    session = each_api.open(Dummy(), PARTS).join(A)
    revoke(run, each_api, session, "all")
    page = each_api.send("GET", f"{session.path}/audit", session.key).json()
    last = json.loads(page["lines"][-1])
    assert (last["event"], last["slot"]) == ("revoked", A)
    assert session.try_join(B).status_code == 200, "nobody had taken this one"


def test_revoking_the_parties_of_no_session_ends_nothing(
    each_api: Api, run: Run
) -> None:
    session = each_api.open(Dummy(), PARTS).join()
    done = run("key", "revoke", "--session", "another")
    assert done.exit_code == 1
    assert "No party of a session 'another' has a token" in done.stderr
    assert session.task(A).status_code == 200


def test_requests_in_progress_fail_once_their_token_is_revoked(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll that waits is given no task, and an upload that arrives is not kept."""
    settings = api.service.settings
    monkeypatch.setenv("COTERIE_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("COTERIE_DATABASE_URL", settings.database_url)
    monkeypatch.setattr(
        "analyst_service.storage.database.SystemClock", lambda: api.clock
    )
    recruiting = api.open(Dummy(), PARTS).join(A)
    poll = start(
        api, "GET", f"{recruiting.path}/task?wait=20", secret=recruiting.tokens[A]
    )
    wait_for(lambda: recruiting.id in api.service.notifier.waited_for)
    assert CliRunner().invoke(main, ["key", "revoke", "--session", recruiting.id])
    recruiting.join(B)
    assert poll.result(60).status == 401

    session = api.open(Dummy(), PARTS).join()
    content = session.reply(A)

    def pieces() -> Any:
        yield content[:10]
        CliRunner().invoke(main, ["key", "revoke", "--session", session.id])
        yield content[10:]

    from party_sdk.analyst_client.requests import contribution_headers

    before = api.stored()[0]["contributions"]
    refused = api.send(
        "PUT",
        session.place(content),
        session.tokens[A],
        {**contribution_headers(content), "Content-Length": str(len(content))},
        content=pieces(),
    )
    assert refused.status_code == 401
    assert api.stored()[0]["contributions"] == before


# A join that somebody recorded


@pytest.mark.threat(29)
def test_a_recorded_join_gives_no_second_token(each_api: Api) -> None:
    session = each_api.open(Dummy(), PARTS)
    recorded = session.joining(A)
    first = each_api.send("POST", "/v1/join", json=recorded)
    assert first.status_code == 200
    for _ in range(3):
        replayed = each_api.send("POST", "/v1/join", json=recorded)
        assert problem_of(replayed) is Problem.KEY_NOT_AUTHENTIC
    assert len(tokens(each_api, A)) == 1
    session.joins[A] += 1
    assert session.try_join(A).status_code == 200, "the holder of the key signs anew"
    shown = each_api.send("POST", "/v1/join/preview", json={"code": session.codes[A]})
    assert shown.json()["joins"] == 2


CHANGED: dict[str, dict[str, Any]] = {
    "rows": {"n_rows": 999},
    "columns": {"n_columns": 7},
    "mark": {"mark": "0" * 64},
}


@pytest.mark.threat(29)
@pytest.mark.parametrize("what", CHANGED)
def test_the_proof_of_a_join_covers_the_line_of_the_roster(api: Api, what: str) -> None:
    session = api.open(Dummy(), PARTS)
    body = session.joining(A)
    changed = {**body, "member": {**body["member"], **CHANGED[what]}}
    before = api.stored()
    refused = api.send("POST", "/v1/join", json=changed)
    assert problem_of(refused) is Problem.KEY_NOT_AUTHENTIC
    assert api.stored() == before
    assert api.send("POST", "/v1/join", json=body).status_code == 200


# An upload that comes too early


@pytest.mark.threat(41)
def test_an_upload_before_all_have_joined_gets_a_retry_time(api: Api) -> None:
    content = api.open(Dummy(), PARTS).join().reply(A)
    session = api.open(Dummy(), PARTS).join(A)
    path = f"{session.path}/rounds/1/attempts/1/contribution"
    before = api.stored()
    early = session.put(A, content, path)
    assert (early.status_code, problem_of(early)) == (409, Problem.NOT_READY)
    assert early.headers["retry-after"] == "1"
    assert api.stored() == before
