"""Secrets from files: read once, never shown, and refused in a sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import make_url
from support.databases import Databases

from analyst_service.blobs.objects import open_objects
from analyst_service.secret_files import file_variable, secret_fields, variable
from analyst_service.settings import Settings
from clustering_protocols.common.errors import Unavailable
from party_sdk.cli import main

HUSH = "hush-8c1/@: %2F?#é"
VALUES = {
    "database_url": "postgresql://me:hush@here/x",
    "database_password": HUSH,
    "blob_store": "s3://hush-bucket/prefix",
    "smtp_password": HUSH,
}
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*words: str, **variables: str | Path) -> Result:
        given = {name: str(value) for name, value in variables.items()}
        here = {"COTERIE_DATA_DIR": str(tmp_path / "data"), **given}
        return CliRunner().invoke(main, words, env=here)

    return call


def secret(path: Path, text: str) -> Path:
    path.write_text(f"{text}\n")
    path.chmod(0o400)
    return path


def test_every_setting_that_is_a_secret_is_tried_here() -> None:
    assert sorted(secret_fields(Settings.model_fields)) == sorted(VALUES)
    words = ("password", "secret", "url")
    for name in Settings.model_fields:
        assert name in VALUES or not any(word in name for word in words), name


@pytest.mark.parametrize("field", VALUES)
def test_a_secret_comes_from_its_file_and_is_printed_nowhere(
    field: str, tmp_path: Path, run: Run
) -> None:
    file = secret(tmp_path / "file", VALUES[field])
    variables: dict[str, Any] = {file_variable(field): file}
    if field == "database_password":
        variables["COTERIE_DATABASE_URL"] = "postgresql://me@here/x"
    done = run("config", "check", "--json", **variables)
    assert done.exit_code == 0, done.output
    assert "Warning" not in done.stderr
    assert "hush" not in done.output
    found = {line["name"]: line for line in json.loads(done.stdout)}
    line = {"name": variable(field), "source": "file", "value": str(file)}
    assert found[variable(field)] == line
    assert "hush" not in run("config", "check", **variables).output
    plain = {variable(field): VALUES[field]} | variables
    del plain[file_variable(field)]
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


@pytest.mark.parametrize("url", ["", "postgresql://me:other@here/x"])
def test_a_password_without_its_place_is_refused(url: str, run: Run) -> None:
    variables = {"COTERIE_DATABASE_URL": url, "COTERIE_DATABASE_PASSWORD": "hush"}
    done = run("config", "check", **variables)
    assert done.exit_code == 1
    assert "COTERIE_DATABASE_PASSWORD" in done.stderr
    assert "hush" not in done.output


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


def test_a_near_miss_of_a_file_is_named(tmp_path: Path, run: Run) -> None:
    file = secret(tmp_path / "file", "hush")
    done = run("migrate", COTERIE_DATABASE_PASWORD_FILE=file)
    assert "did you mean COTERIE_DATABASE_PASSWORD_FILE?" in done.stderr


@pytest.mark.postgres
def test_a_database_is_opened_with_the_password_of_a_file(
    databases: Databases, tmp_path: Path, run: Run
) -> None:
    with databases.empty("postgresql", tmp_path) as url:
        address = make_url(url).set(username="postgres").render_as_string()
        file = secret(tmp_path / "file", HUSH)
        variables = {"COTERIE_DATABASE_URL": address}
        variables["COTERIE_DATABASE_PASSWORD_FILE"] = str(file)
        done = run("migrate", **variables)
        assert done.exit_code == 0, done.output
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
