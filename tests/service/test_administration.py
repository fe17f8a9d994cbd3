"""The administrator's commands: settings, secrets in files, and the log of acts."""

import json
import logging
import os
import re
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import Result
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError
from support.databases import BOTH_DATABASES, Databases
from support.in_process import Api

from analyst_service.credentials import Role, create_key, revoke_tokens
from analyst_service.database import Database
from analyst_service.logs import LOGGER
from analyst_service.object_store import open_objects
from analyst_service.settings import (
    SECRET_SETTINGS,
    Settings,
    file_variable_name,
    variable_name,
)
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.protocols.dummy import Dummy
from tests.service.samples import PARTS, A, B

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"COTERIE_WORKERS": "abc"}, "COTERIE_WORKERS: give a whole number"),
        ({"COTERIE_WORKERS": "0"}, "COTERIE_WORKERS: give at least 1"),
        ({"COTERIE_DATABASE_URL": "nonsense"}, "is not the URL of a database"),
        ({"COTERIE_DATABASE_URL": "mysql://me@here/x"}, "is not supported"),
        (
            {"COTERIE_DATABASE_URL": "postgresql://me:hush@127.0.0.1:1/x"},
            'server at "127.0.0.1", port 1 failed: Connection refused. COTERIE_DATABASE',
        ),
        (
            {"COTERIE_DATABASE_URL": "postgresql://127.0.0.1:5432/nowhere-at-all"},
            "The database cannot be used",
        ),
        (
            {"COTERIE_DATABASE_URL": "postgresql://u:hush@hush@127.0.0.1/x"},
            "write @ in the password as %40",
        ),
        ({"COTERIE_DATABASE_PASSWORD": "hush"}, "COTERIE_DATABASE_PASSWORD"),
        (
            {
                "COTERIE_DATABASE_URL": "postgresql://me:other@here/x",
                "COTERIE_DATABASE_PASSWORD": "hush",
            },
            "COTERIE_DATABASE_PASSWORD",
        ),
        ({"COTERIE_DATA_DIR": "/proc/nothing"}, "The data folder /proc/nothing"),
        ({"COTERIE_SMTP_SERVER": "mail.example.org:25"}, "smtp://user@host:587"),
        ({"COTERIE_SMTP_SERVER": "smtp://a#b@mail.example"}, "smtp://user@host:587"),
        (
            {"COTERIE_HIDDEN_PROTOCOLS": "dummy, lff"},
            "names 'lff', which is not a protocol here. Did you mean 'llf'?",
        ),
        ({"COTERIE_TRUSTED_PROXIES": "10.0.0.1, nginx"}, "'nginx' is not an IP"),
        ({"COTERIE_TRUSTED_PROXIES": "10.0.0.1,*"}, "'*' is not an IP address"),
        (
            {"COTERIE_PROTOCOL_PACKAGES": "nix"},
            "COTERIE_PROTOCOL_PACKAGES names 'nix', which is not installed.",
        ),
        ({"COTERIE_SMTP_SERVER": "smtp://mail.example.org"}, "needs COTERIE_SMTP_FROM"),
    ],
)
def test_what_is_set_wrong_is_said_in_a_sentence(
    run: Run, variables: dict[str, str], said: str
) -> None:
    done = run("serve", **variables)
    assert done.exit_code == 1
    assert said in done.stderr
    assert "Traceback" not in done.output
    assert "hush" not in done.output
    assert isinstance(done.exception, SystemExit)


def test_config_check_prints_sources_and_near_misses_and_no_password(run: Run) -> None:
    variables = {
        "COTERIE_DATABASE_URL": "postgresql://me:hush@here/x?sslpassword=hush&a=b",
        "COTERIE_BLOB_STORE": "s3://bucket/prefix?secret_access_key=hush",
        "COTERIE_WORKERS": "3",
        "COTERIE_WORKER": "3",
        "COTERIE_DATABASE_PASWORD_FILE": "/somewhere",
        "COTERIE_HOME": "/somewhere",
    }
    done = run("config", "check", **variables)
    assert done.exit_code == 0
    assert "COTERIE_WORKER is unknown; did you mean COTERIE_WORKERS?" in done.stderr
    assert "did you mean COTERIE_DATABASE_PASSWORD_FILE?" in done.stderr
    assert "COTERIE_HOME" not in done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == [
        f"COTERIE_{name.upper()}" for name in Settings.model_fields
    ]
    assert ["COTERIE_WORKERS", "environment", "3"] in lines
    assert ["COTERIE_CACHE_BYTES", "default", "21474836480"] in lines
    assert "hush" not in done.output
    assert "postgresql://me:***@here/x?sslpassword=***&a=b" in done.stdout
    said = json.loads(run("config", "check", "--json", **variables).stdout)
    assert {"name": "COTERIE_WORKERS", "source": "environment", "value": 3} in said
    assert run("config", "check", COTERIE_WORKERS="no").exit_code == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hu/sh@127.0.0.1/x", "postgresql://u:***@127.0.0.1/x"),
        ("postgresql://u:hu:sh@127.0.0.1/x", "postgresql://u:***@127.0.0.1/x"),
        ("postgresql://u@v:hush@127.0.0.1/x", "postgresql://u@v:***@127.0.0.1/x"),
        ("postgresql://u@127.0.0.1:5432/x", "postgresql://u@127.0.0.1:5432/x"),
    ],
)
def test_config_check_hides_a_password_with_any_character(
    run: Run, url: str, shown: str
) -> None:
    done = run("config", "check", COTERIE_DATABASE_URL=url)
    assert f"  {shown}\n" in done.stdout


@pytest.mark.usefixtures("serves")
@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_empty_folder_becomes_an_analyst_with_one_key(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    stream = "click.testing._NamedTextIOWrapper.isatty"
    monkeypatch.setattr(stream, lambda _: is_terminal)
    first = run("serve")
    assert first.exit_code == 0, first.output
    file = tmp_path / "data" / "coordinator.key"
    if is_terminal:
        [secret] = re.findall(r"\bck_\S+", first.output)
        assert not file.exists()
    else:
        assert str(file) in first.stdout
        assert file.stat().st_mode & 0o777 == 0o600
        secret = file.read_text().strip()
    assert "ck_" not in first.output.replace(secret, "") + first.stderr
    again = run("serve")
    assert again.exit_code == 0
    assert "key of the coordinator" not in again.output
    assert len(json.loads(run("key", "list", "--json").stdout)) == 1


@pytest.mark.usefixtures("serves")
@pytest.mark.parametrize("kind", BOTH_DATABASES)
@pytest.mark.parametrize(
    "step", ["credentials.create_key", "cli.server._show_first_key"]
)
def test_a_start_that_died_before_its_first_key_is_repeated(
    run: Run,
    tmp_path: Path,
    databases: Databases,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    step: str,
) -> None:
    with databases.empty(kind, tmp_path) as url, caplog.at_level(logging.INFO):
        serve = partial(run, "serve", "--init", COTERIE_DATABASE_URL=url)
        with monkeypatch.context() as patch:
            died = Mock(side_effect=KeyboardInterrupt)
            patch.setattr(f"analyst_service.{step}", died)
            assert serve().exit_code != 0
        assert "key-made" not in caplog.messages
        assert serve().exit_code == 0
        assert caplog.messages.count("key-made") == 1
        assert (tmp_path / "data" / "coordinator.key").exists()


@pytest.mark.usefixtures("serves")
@pytest.mark.postgres
def test_an_empty_database_of_postgresql_is_set_up_on_request(
    run: Run, tmp_path: Path, databases: Databases
) -> None:
    with databases.empty("postgresql", tmp_path) as url:
        at = {"COTERIE_DATABASE_URL": url}
        assert "has no schema yet" in run("serve", **at).stderr
        done = run("serve", "--init", **at)
        assert done.exit_code == 0, done.output
        assert (tmp_path / "data" / "coordinator.key").exists()


def test_a_taken_address_and_an_invalid_certificate_are_named(
    run: Run, tmp_path: Path
) -> None:
    assert run("migrate").exit_code == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("serve", "--port", port)
    assert done.exit_code == 1
    assert f"127.0.0.1:{port} cannot be bound" in done.stderr
    pem = tmp_path / "no.pem"
    pem.write_text("nothing")
    done = run("serve", "--certificate", pem, "--private-key", pem)
    assert "cannot be used for TLS" in done.stderr
    assert run("serve", "--certificate", pem).exit_code == 2


def test_keys_are_listed_without_tokens_and_by_their_role(api: Api, run: Run) -> None:
    session = api.open(Dummy(), PARTS).join()
    api.key(Role.ADMINISTRATOR)
    url = api.service.database.engine.url.render_as_string(hide_password=False)

    def listed(*words: str) -> list[tuple[str, str | None]]:
        done = run("key", "list", "--json", *words, COTERIE_DATABASE_URL=url)
        found = json.loads(done.stdout)
        return sorted((line["role"], line["session"]) for line in found)

    assert listed() == [("administrator", None), ("coordinator", None)]
    assert listed("--role", "coordinator") == [("coordinator", None)]
    assert listed("--tokens") == [("party", session.id)] * 2
    both = run("key", "list", "--tokens", "--role", "coordinator")
    assert both.exit_code == 2
    header, line = run("key", "list", COTERIE_DATABASE_URL=url).stdout.splitlines()[:2]
    columns = ["ID", "ROLE", "FOR", "WHOM", "SESSION", "MADE", "USED", "ENDS"]
    assert header.split() == columns
    assert "never" in line
    assert "None" not in line


def test_an_outage_of_the_database_is_one_line(
    api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = api.driver
    driver._start_processes()

    def away(*_: Any) -> None:
        raise OperationalError("SELECT 1", {}, Exception("gone"))

    with caplog.at_level(logging.INFO), monkeypatch.context() as patch:
        patch.setattr(Database, "read", away)
        for _ in range(20):
            driver._run_and_log_errors(driver._start_steps)
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "the database is away" in line] == lines[:1]
    with caplog.at_level(logging.INFO):
        driver._run_and_log_errors(driver._start_steps)
    assert caplog.records[-1].getMessage() == "driver: the database answers again"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("identity.json", "The analyst's key in {} cannot be read"),
        ("coterie.db", "The database cannot be used"),
    ],
)
def test_files_that_are_damaged_are_said_in_a_sentence(
    run: Run, tmp_path: Path, name: str, said: str
) -> None:
    assert run("migrate").exit_code == 0
    file = tmp_path / "data" / name
    file.write_bytes(b"not what it was" * 100)
    done = run("serve")
    assert said.format(file) in done.stderr
    assert done.exit_code == 1
    assert "Traceback" not in done.stderr


@pytest.fixture
def acts(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    caplog.set_level(logging.INFO, LOGGER)
    return lambda: [
        {"event": each.message, **vars(each)["fields"]}
        for each in caplog.records
        if each.name == LOGGER
    ]


def test_a_deleted_session_is_logged_with_who_and_no_secret(
    api: Api, acts: Callable[[], list[dict[str, Any]]]
) -> None:
    session = api.open(Dummy(), PARTS, about={"title": "hush"}).join(A)
    api.send("DELETE", session.path, session.key)
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
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    api.service.database.transact(revoke_tokens, session.id)
    before = api.stored()
    caplog.set_level(logging.INFO, "coterie")
    caplog.clear()
    for number in range(50):
        api.send("GET", "/v1/sessions", f"ck_guess{number}")
        api.send("GET", f"{session.path}/task", session.tokens[A])
    assert api.stored() == before
    lines = [vars(each)["fields"] for each in caplog.records]
    assert [line["problem"] for line in lines] == ["unauthenticated"] * 100
    callers = {line["caller"] for line in lines}
    assert len(callers) == 2  # nobody, and the token that counted once
    assert None in callers
    text = json.dumps(lines)
    assert "guess" not in text
    assert session.tokens[A] not in text


def test_refused_invitations_are_logged_with_their_place(
    api: Api, acts: Callable[[], list[dict[str, Any]]]
) -> None:
    session = api.open(Dummy(), PARTS)
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
        refused = api.send("POST", path, json=body)
        assert refused.json()["type"].endswith(reason)
    session.invite(B)
    ended = api.send("POST", "/v1/join/preview", json={"code": forged["code"]})
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


def test_commands_write_their_acts_to_stderr_under_the_login(run: Run) -> None:
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
    assert run("key", "revoke", key["id"]).exit_code == 7


HUSH = "hush-8c1/@: %2F?#é"
VALUES = {
    "database_url": "postgresql://me:hush@here/x",
    "database_password": HUSH,
    "blob_store": "s3://hush-bucket/prefix",
    "smtp_password": HUSH,
}


def secret(path: Path, text: str) -> Path:
    path.write_text(f"{text}\n")
    path.chmod(0o400)
    return path


def test_every_setting_that_is_a_secret_is_tried_here() -> None:
    assert sorted(SECRET_SETTINGS) == sorted(VALUES)
    words = ("password", "secret", "url")
    for name in Settings.model_fields:
        assert name in VALUES or not any(word in name for word in words), name


@pytest.mark.parametrize("field", VALUES)
def test_a_secret_comes_from_its_file_and_is_printed_nowhere(
    field: str, tmp_path: Path, run: Run
) -> None:
    file = secret(tmp_path / "file", VALUES[field])
    variables: dict[str, Any] = {file_variable_name(field): file}
    if field == "database_password":
        variables["COTERIE_DATABASE_URL"] = "postgresql://me@here/x"
    done = run("config", "check", "--json", **variables)
    assert done.exit_code == 0, done.output
    assert "Warning" not in done.stderr
    assert "hush" not in done.output
    found = {line["name"]: line for line in json.loads(done.stdout)}
    line = {"name": variable_name(field), "source": "file", "value": str(file)}
    assert found[variable_name(field)] == line
    assert "hush" not in run("config", "check", **variables).output
    plain = {variable_name(field): VALUES[field]} | variables
    del plain[file_variable_name(field)]
    if "password" in field:
        assert "hush" not in run("config", "check", **plain).output
    both = run("config", "check", **variables | plain)
    assert both.exit_code == 1
    assert "both set" in both.stderr
    assert "hush" not in both.output


def test_a_password_of_any_signs_is_that_of_the_address() -> None:
    settings = Settings(
        database_url="postgres://me@here:5433/x?sslmode=require",
        database_password=HUSH,  # type: ignore[arg-type]  # read as one
    )
    url = make_url(settings.database)
    assert (url.username, url.password, url.port) == ("me", HUSH, 5433)
    assert (url.drivername, url.query) == ("postgresql+psycopg", {"sslmode": "require"})
    assert HUSH not in repr(settings)


@pytest.mark.parametrize(
    "content", [None, b"", b"\n", b"hush\nhush\n", b"hush\x00", b"hush\xff"]
)
def test_a_file_that_is_no_secret_is_refused_by_its_name_alone(
    content: bytes | None, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    done = run("migrate", COTERIE_SMTP_PASSWORD_FILE=file)
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert "COTERIE_SMTP_PASSWORD_FILE" in done.stderr
    assert str(file) in done.stderr
    assert "hush" not in done.output


@pytest.mark.parametrize(
    "name", ["COTERIE_SMTP_PASSWORD_FILE", "AWS_SECRET_ACCESS_KEY_FILE"]
)
def test_a_file_that_others_may_read_is_warned_of(
    tmp_path: Path, run: Run, name: str
) -> None:
    file = secret(tmp_path / "file", "hush")
    for mode, warned in ((0o400, False), (0o440, False), (0o444, True)):
        file.chmod(mode)
        done = run("migrate", **{name: file})
        assert done.exit_code == 0
        assert (f"Warning: {name}" in done.stderr) is warned
        assert "hush" not in done.output


def test_credentials_of_an_object_store_come_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_REGION", "default")
    key = secret(tmp_path / "key", "hush-key")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID_FILE", str(key))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY_FILE", str(tmp_path / "nothing"))
    with pytest.raises(Unavailable, match="AWS_SECRET_ACCESS_KEY_FILE"):
        open_objects("s3://bucket")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY_FILE", str(key))
    store: Any = open_objects("s3://bucket")
    assert store.config["access_key_id"] == "hush-key"
    assert store.config["secret_access_key"] == "hush-key"
    assert "hush" not in repr(store)
