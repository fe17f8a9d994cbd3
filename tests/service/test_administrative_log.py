"""The administrative log: who did what, in one chain, without a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from support.browsing import Browser, texts

from analyst_service.auth.service import AuthService, Role
from analyst_service.retention.worker import Sweeper
from analyst_service.storage.models import AdministrationLine, AuditLine
from analyst_service.transactions.administrative_log import (
    MOST_KINDS,
    SERVICE,
    Act,
    AdministrationLog,
)
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import hash_chain
from clustering_protocols.terms.terms import Layout
from party_sdk.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from support.in_process import Api

PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(40, 3)), Layout.lattice(2), seed=1
)
A, B = PARTS.layout.names


def keep(api: Api) -> None:
    Sweeper(api.service).turn()


def logged(api: Api) -> list[dict[str, Any]]:
    """What the log says; its chain has to hold."""
    with api.service.database.read() as transaction:
        return list(hash_chain.read(AdministrationLog(transaction).lines()))


def test_pages_and_the_api_write_who_did_what_and_no_secret(each_api: Api) -> None:
    key = each_api.key(Role.ADMINISTRATOR)
    browser = Browser(each_api)
    browser.sign_in(key)
    token = browser.token()
    form = {"token": token, "label": "Ward", "role": "coordinator"}
    shown = browser.post("/ui/keys", form)
    [made] = re.findall(r"ck_[\w-]+", texts(shown))
    [ward] = re.findall(r"/ui/keys/(\w+)/revoke", shown.text.partition("Ward</td>")[2])[
        :1
    ]
    rotated = browser.post(f"/ui/keys/{ward}/rotate", {"token": token})
    browser.post(f"/ui/keys/{ward}/revoke", {"token": token})
    session = each_api.open(Dummy(), PARTS, about={"title": "hush"}).join(A)
    each_api.send("DELETE", session.path, session.key)
    _, signed_in, *acts, opener, deleted = logged(each_api)
    own = signed_in["actor"]
    assert [
        (each["event"], each["actor"], each["label"], each.get("key")) for each in acts
    ] == [
        (event, own, "tests", ward)
        for event in ("key-made", "key-rotated", "key-revoked")
    ]
    assert (acts[0]["made_for"], acts[0]["role"]) == ("Ward", "coordinator")
    assert (deleted["event"], deleted["session"]) == ("session-deleted", session.id)
    assert (deleted["actor"], deleted["label"]) == (opener["key"], "tests")
    text = json.dumps(logged(each_api))
    secrets = {
        made,
        key,
        session.key,
        *session.tokens.values(),
        *browser.cookies.values(),
    }
    secrets |= set(re.findall(r"ck_[\w-]+", texts(rotated)))
    assert not [secret for secret in {*secrets, token, "hush"} if secret in text]


def test_strangers_who_guess_keys_fill_no_table(api: Api) -> None:
    key = api.key()
    known = logged(api)[-1]["key"]
    with api.service.database.write() as transaction:
        AuthService(transaction, api.clock).revoke(known)
    before = len(logged(api))
    browser = Browser(api)
    for number in range(30):
        assert browser.sign_in(f"ck_guess{number}").status_code == 401
    assert browser.sign_in(key).status_code == 401
    assert len(logged(api)) == before
    api.clock.forward(30)
    keep(api)
    unknown, revoked = logged(api)[before:]
    assert (unknown["event"], unknown["actor"]) == ("sign-in-refused", "stranger")
    assert (unknown["count"], "credential" in unknown) == (30, False)
    assert unknown["since"] < unknown["at"]
    assert (revoked["count"], revoked["credential"]) == (1, known)
    keep(api)
    assert len(logged(api)) == before + 2


def refusals(api: Api) -> list[dict[str, Any]]:
    """What the log says of strangers, the last first."""
    return [each for each in logged(api)[::-1] if each["actor"] == "stranger"]


@pytest.mark.threat(172)
def test_a_flood_of_wrong_tokens_is_a_line_now_and_one_an_hour(each_api: Api) -> None:
    session = each_api.open(Dummy(), PARTS).join(A)
    with each_api.service.database.write() as transaction:
        AuthService(transaction, each_api.clock).revoke_tokens(session.id)
    for number in range(200):
        each_api.send("GET", "/v1/sessions", f"ck_guess{number}")
        each_api.send("GET", f"{session.path}/task", session.tokens[A])
        each_api.send("GET", "/v1/sessions")
        if number % 10 == 9:
            each_api.clock.forward(60)
            keep(each_api)
    found = refusals(each_api)
    assert {each["event"] for each in found} == {"proof-refused"}
    assert [each["count"] for each in found] == [10, 10]  # 380 wait for their hour
    assert ["credential" in each for each in found].count(True) == 1
    each_api.clock.forward(3600)
    keep(each_api)
    assert sum(each["count"] for each in refusals(each_api)) == 400
    text = json.dumps(logged(each_api))
    assert "guess" not in text
    assert session.tokens[A] not in text


@pytest.mark.threat(172)
def test_kinds_beyond_a_number_are_one_line(api: Api) -> None:
    for number in range(3 * MOST_KINDS):
        api.service.note_stranger(Act.PROOF_REFUSED, credential=f"{number:016x}")
    keep(api)
    counts = [each["count"] for each in refusals(api)]
    assert len(counts) == MOST_KINDS + 1
    assert sum(counts) == 3 * MOST_KINDS


def test_a_process_that_ends_writes_what_it_counted(api: Api) -> None:
    for _ in range(3):
        api.send("GET", "/v1/sessions", "ck_guess")
    keep(api)
    api.send("GET", "/v1/sessions", "ck_guess")
    with Sweeper(api.service):
        pass
    assert [each["count"] for each in refusals(api)] == [1, 3]


def test_refused_invitations_are_written_with_their_place(each_api: Api) -> None:
    session = each_api.open(Dummy(), PARTS)
    spent = session.codes[A]
    session.join(A)
    forged = session.joining(B)
    forged["proof"] = "00" * 64
    asked = {
        "not-found": ("/v1/join/preview", {"code": "x" * 32}),
        "invitation-used": (
            "/v1/join/decline",
            {"code": spent, "state": "declined", "reason": "no"},
        ),
        "key-not-authentic": ("/v1/join", forged),
    }
    for reason, (path, body) in asked.items():
        refused = each_api.send("POST", path, json=body)
        assert refused.json()["type"].endswith(reason)
    session.invite(B)
    ended = each_api.send("POST", "/v1/join/preview", json={"code": forged["code"]})
    assert ended.json()["type"].endswith("invitation-expired")
    keep(each_api)
    found = {each["reason"]: each for each in refusals(each_api)}
    assert found.keys() == {*asked, "invitation-expired"}
    places = {r: (each.get("session"), each.get("slot")) for r, each in found.items()}
    assert places == {
        "not-found": (None, None),
        "invitation-used": (session.id, A),
        "key-not-authentic": (session.id, B),
        "invitation-expired": (session.id, B),
    }
    text = json.dumps(list(found.values()))
    assert not [code for code in (spent, forged["code"]) if code in text]


def test_lines_that_are_written_at_once_are_one_chain(each_api: Api) -> None:
    database, now = each_api.service.database, each_api.clock.now()

    def write(number: int) -> None:
        database.transact(
            lambda transaction: AdministrationLog(transaction).append(
                Act.BACKUP_MADE, SERVICE, now, blobs=number
            )
        )

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(12)))
    assert {each["blobs"] for each in logged(each_api)} == set(range(12))


# The command


def over(api: Api, folder: Path) -> Callable[..., Result]:
    """Run commands over the database of an analyst."""
    url = api.service.database.engine.url.render_as_string(hide_password=False)
    here = {"COTERIE_DATABASE_URL": url, "COTERIE_DATA_DIR": str(folder / "data")}
    return lambda *words, **env: CliRunner().invoke(main, words, env={**here, **env})


@pytest.fixture
def run(tmp_path: Path, api: Api) -> Callable[..., Result]:
    return over(api, tmp_path)


def read(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_command_prints_all_logs_by_time_from_a_time_on(
    each_api: Api, tmp_path: Path
) -> None:
    api, run = each_api, over(each_api, tmp_path)
    session = api.open(Dummy(), PARTS).join().finish()
    api.clock.forward(86_400)
    api.send("DELETE", session.path, session.key)
    found = read(run("audit", "--json"))
    assert [each["at"] for each in found] == sorted(each["at"] for each in found)
    events = [(each["log"], each["event"]) for each in found]
    assert ("administration", "key-made") in events
    assert ("session", "opened") in events
    late = read(run("audit", "--json", "--since", "2026-03-02"))
    assert [(each["event"], each.get("id")) for each in late] == [
        ("session-deleted", None),
        ("deleted", session.id),
    ]
    plain = run("audit", "--since", "2026-03-02T00:00").stdout.splitlines()
    assert "session-deleted" in plain[0]
    assert session.id in plain[1]
    assert run("audit", "--since", "soon").exit_code == 2


@pytest.mark.parametrize("table", [AdministrationLine, AuditLine])
def test_a_line_that_was_changed_fails_the_command_and_is_named(
    api: Api, run: Callable[..., Result], table: Any
) -> None:
    session = api.open(Dummy(), PARTS).join()
    api.send("POST", f"{session.path}/cancel", session.key)
    run("key", "create")
    with api.service.database.write() as transaction:
        first = sa.update(table).where(table.number == 1)
        transaction.execute(
            first.values(line=sa.func.replace(table.line, "tests", "x"))
        )
        transaction.execute(
            first.values(line=sa.func.replace(table.line, "opened", "x"))
        )
    failed = run("audit", "--json")
    assert failed.exit_code == 3
    assert "Line 2 does not follow" in failed.stderr
    assert failed.stdout
    other = "administration" if table is AuditLine else "session"
    assert other in failed.stdout


def test_what_commands_do_is_written_under_the_login(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    made = json.loads(run("key", "create", "--label", "ward", "--json").stdout)
    run("key", "rotate", made["id"])
    run("backup", str(tmp_path / "copy"))
    run("key", "revoke", made["id"])
    found = read(run("audit", "--json"))
    assert [each["event"] for each in found] == [
        "key-made",
        "key-rotated",
        "backup-made",
        "key-revoked",
    ]
    assert {each["actor"] for each in found} == {"command"}
    assert len({each["label"] for each in found}) == 1


def test_a_restored_analyst_goes_on_with_the_log(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    run("key", "create")
    made = run("backup", str(tmp_path / "copy"))
    signed = made.stderr.rpartition("key ")[2].strip(" .\n")
    folder = str(tmp_path / "elsewhere")
    fresh = {"COTERIE_DATABASE_URL": "", "COTERIE_DATA_DIR": folder}
    words = ("restore", str(tmp_path / "copy"), "--fingerprint", signed)
    assert run(*words, **fresh).exit_code == 0
    events = [each["event"] for each in read(run("audit", "--json", **fresh))]
    assert events == ["key-made", "restored"]
