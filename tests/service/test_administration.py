"""What an administrator reads when something is set wrong, and backups that hold."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sqlalchemy.exc import OperationalError
from support.analyst_process import free_port
from support.in_process import Api

from analyst_service.credentials import Role
from analyst_service.settings import Settings
from analyst_service.storage.database import Database
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout
from party_sdk.cli import main

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PARTS.layout.names


def ran(folder: Path, variables: Mapping[str, str], *words: str) -> Result:
    """Run a command of an administrator in an environment of its own."""
    environment = {
        "COTERIE_DATA_DIR": str(folder),
        "COTERIE_DATABASE_URL": "",
        **variables,
    }
    return CliRunner().invoke(main, words, env=environment)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"COTERIE_WORKERS": "abc"},
            "COTERIE_WORKERS: give a whole number",
        ),
        ({"COTERIE_WORKERS": "0"}, "COTERIE_WORKERS: give at least 1"),
        ({"COTERIE_DATABASE_URL": "nonsense"}, "is no address of a database"),
        ({"COTERIE_DATABASE_URL": "mysql://me@here/x"}, "is not served"),
        (
            {"COTERIE_DATABASE_URL": "postgresql://me:hush@127.0.0.1:1/x"},
            "The database cannot be used",
        ),
        (
            {"COTERIE_DATABASE_URL": "postgresql://127.0.0.1:5432/nowhere-at-all"},
            "The database cannot be used",
        ),
        ({"COTERIE_DATA_DIR": "/proc/nothing"}, "The data folder /proc/nothing"),
    ],
)
@pytest.mark.parametrize("command", ["migrate", "serve"])
def test_what_is_set_wrong_is_said_in_a_sentence(
    tmp_path: Path, command: str, variables: dict[str, str], said: str
) -> None:
    done = ran(tmp_path, variables, command)
    assert done.exit_code == 1
    assert said in done.stderr
    assert "Traceback" not in done.output
    assert "hush" not in done.output
    assert isinstance(done.exception, SystemExit)


def test_a_near_miss_of_a_setting_is_named(tmp_path: Path) -> None:
    done = ran(tmp_path, {"COTERIE_WORKER": "3"}, "migrate")
    assert "COTERIE_WORKER is no setting; did you mean COTERIE_WORKERS?" in done.stderr
    assert "schema was created: revision" in done.stderr
    again = ran(tmp_path, {"COTERIE_HOME": "/somewhere"}, "migrate")
    assert again.stderr.startswith("The schema is current")


def test_config_check_prints_sources_and_no_password(
    tmp_path: Path,
) -> None:
    variables = {
        "COTERIE_DATABASE_URL": "postgresql://me:hush@here/x?sslpassword=hush&a=b",
        "COTERIE_BLOB_STORE": "s3://bucket/prefix?secret_access_key=hush",
        "COTERIE_WORKERS": "3",
        "COTERIE_WORKER": "3",
    }
    done = ran(tmp_path, variables, "config", "check")
    assert done.exit_code == 0
    assert "did you mean COTERIE_WORKERS?" in done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == [
        f"COTERIE_{name.upper()}" for name in Settings.model_fields
    ]
    assert ["COTERIE_WORKERS", "environment", "3"] in lines
    assert ["COTERIE_CACHE_BYTES", "default", "21474836480"] in lines
    assert "hush" not in done.output
    assert "postgresql://me:***@here/x?sslpassword=***&a=b" in done.stdout
    said = json.loads(ran(tmp_path, variables, "config", "check", "--json").stdout)
    assert {"name": "COTERIE_WORKERS", "source": "environment", "value": 3} in said
    assert ran(tmp_path, {"COTERIE_WORKERS": "no"}, "config", "check").exit_code == 1


def test_a_taken_address_and_an_invalid_certificate_are_named(
    tmp_path: Path,
) -> None:
    assert ran(tmp_path, {}, "migrate").exit_code == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = ran(tmp_path, {}, "serve", "--port", port)
    assert done.exit_code == 1
    assert f"127.0.0.1:{port} cannot be bound" in done.stderr
    pem = tmp_path / "no.pem"
    pem.write_text("nothing")
    done = ran(
        tmp_path, {}, "serve", "--certificate", str(pem), "--private-key", str(pem)
    )
    assert "cannot be used for TLS" in done.stderr
    assert ran(tmp_path, {}, "serve", "--certificate", str(pem)).exit_code == 2


def test_keys_are_listed_for_people(tmp_path: Path) -> None:
    assert ran(tmp_path, {}, "migrate").exit_code == 0
    made = json.loads(
        ran(tmp_path, {}, "key", "create", "--label", "ward 3", "--json").stdout
    )
    listed = ran(tmp_path, {}, "key", "list").stdout.splitlines()
    header = ["ID", "ROLE", "FOR", "WHOM", "SESSION", "MADE", "USED", "ENDS"]
    assert listed[0].split() == header
    assert "never" in listed[1]
    assert "ward 3" in listed[1]
    assert "None" not in listed[1]
    assert made["key"] not in "".join(listed)


def test_keys_are_listed_without_tokens_and_by_their_role(
    api: Api, tmp_path: Path
) -> None:
    session = api.open(Dummy(), PARTS).join()
    api.key(Role.ADMINISTRATOR)
    url = api.service.database.engine.url.render_as_string(hide_password=False)

    def listed(*words: str) -> list[tuple[str, str | None]]:
        here = {"COTERIE_DATABASE_URL": url}
        done = ran(tmp_path, here, "key", "list", "--json", *words)
        found = json.loads(done.stdout)
        return sorted((line["role"], line["session"]) for line in found)

    assert listed() == [("administrator", None), ("coordinator", None)]
    assert listed("--role", "coordinator") == [("coordinator", None)]
    assert listed("--tokens") == [("party", session.id)] * 2
    wrong = ran(tmp_path, {}, "key", "list", "--tokens", "--role", "coordinator")
    assert wrong.exit_code == 2


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
            driver._run_part(driver._start_steps)
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "the database is away" in line] == lines[:1]
    with caplog.at_level(logging.INFO):
        driver._run_part(driver._start_steps)
    assert caplog.records[-1].getMessage() == "driver: the database answers again"


def test_little_room_is_said_before_there_is_none(api: Api) -> None:
    assert api.send("GET", "/readyz").status_code == 200
    told = api.send("GET", "/metrics").text
    assert "coterie_free_bytes" in told


@pytest.mark.parametrize("command", ["serve", "migrate", "backup"])
def test_files_that_are_damaged_are_said_in_a_sentence(
    tmp_path: Path, command: str
) -> None:
    words = (command, *([str(tmp_path / "copy")] if command == "backup" else ()))
    assert ran(tmp_path / "data", {}, "migrate").exit_code == 0
    identity = tmp_path / "data" / "identity.json"
    if command == "serve":
        identity.write_text("not a key")
        done = ran(tmp_path / "data", {}, *words, "--port", str(free_port()))
        assert f"key in {identity} cannot be read" in done.stderr
    else:
        (tmp_path / "data" / "coterie.db").write_bytes(b"not a database" * 100)
        done = ran(tmp_path / "data", {}, *words)
        assert "The database cannot be used" in done.stderr
    assert done.exit_code == 1
    assert "Traceback" not in done.stderr
