"""Backups: whose they are, what may be wrong with them, and what a restore leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import psycopg
import pyrage
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from support.databases import BOTH_DATABASES, Databases
from support.in_process import Api

from analyst_service.backups import BackupFailed
from analyst_service.backups.encryption import Encryption
from analyst_service.backups.folder import NewFolder
from analyst_service.blobs.files import FileBlobStore
from analyst_service.identity import load_identity
from analyst_service.settings import Settings
from analyst_service.storage.database import Database
from clustering_protocols import simulation
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.identities import Institution, fingerprint
from clustering_protocols.terms.terms import Layout
from party_sdk.cli import main
from tests.service.backups import backed_up, brought_back, sign_again

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(2), seed=1)
A, B = PARTS.layout.names
SECRET_LABEL = "Dr Secret of ward 3"
Change = Callable[[Path], object]


@pytest.fixture
def copy(api: Api, tmp_path: Path) -> Path:
    """A backup of an analyst with a session under way."""
    session = api.open(Dummy(), PARTS).join()
    session.put(A, session.reply(A))
    assert backed_up(api, tmp_path / "monday") >= 2
    return tmp_path / "monday"


@pytest.fixture
def signer(api: Api) -> Institution:
    return load_identity(api.service.settings.identity_path)


@pytest.fixture
def place(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "new", database_url="")


def run(place: Settings, *words: str | Path, **variables: str) -> Result:
    environment = {
        "COTERIE_DATA_DIR": str(place.data_dir),
        "COTERIE_DATABASE_URL": place.database_url,
        **variables,
    }
    return CliRunner().invoke(main, [str(word) for word in words], env=environment)


def left(place: Settings) -> list[str]:
    """What lies in the data folder, but for the empty database."""
    return sorted(
        str(path.relative_to(place.data_dir))
        for path in place.data_dir.rglob("*")
        if path.is_file() and not path.name.startswith("coterie.db")
    )


def n_tables(place: Settings) -> int:
    with closing(Database(place.database)) as database:
        return len(sa.inspect(database.engine).get_table_names())


def a_blob(copy: Path) -> Path:
    return next(path for path in (copy / "blobs").rglob("*") if path.is_file())


def edit(copy: Path, **changes: Any) -> None:
    path = copy / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def link_folder(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def append(path: Path, line: str) -> None:
    path.write_text(path.read_text() + line + "\n")


# What nobody signed


CHANGES: dict[str, Change] = {
    "a table": lambda copy: append(copy / "tables" / "credentials.jsonl", "{}"),
    "no table": lambda copy: (copy / "tables" / "audit.jsonl").unlink(),
    "no blob": lambda copy: a_blob(copy).unlink(),
    "a blob": lambda copy: a_blob(copy).write_bytes(b"x"),
    "no key": lambda copy: (copy / "identity.json").unlink(),
    "another key": lambda copy: (copy / "identity.json").write_bytes(
        Institution("", b"x" * 32).to_bytes()
    ),
    "no signature": lambda copy: (copy / "manifest.sig").unlink(),
    "half a signature": lambda copy: (copy / "manifest.sig").write_text("00"),
    "bytes for a signature": lambda copy: (copy / "manifest.sig").write_bytes(b"\xff"),
    "tables emptied": lambda copy: edit(copy, tables={}),
    "blobs emptied": lambda copy: edit(copy, blobs=[]),
    "another time": lambda copy: edit(copy, time="2020-01-01T00:00:00Z"),
    "a path": lambda copy: edit(
        copy, tables={"../../identity": {"rows": 0, "digest": "0" * 64}}
    ),
    "a revision": lambda copy: edit(copy, revision="0003:head --sql"),
    **{
        f"manifest {text}": lambda copy, text=text: (copy / "manifest.json").write_text(
            text
        )
        for text in ("[]", "{}", "null", '"x"', '{"tables": []}', "[" * 100_000)
    },
    "key a link": lambda copy: link(copy / "identity.json"),
    "manifest a link": lambda copy: link(copy / "manifest.json"),
    "signature a link": lambda copy: link(copy / "manifest.sig"),
    "table a link": lambda copy: link(copy / "tables" / "members.jsonl"),
    "table a pipe": lambda copy: pipe(copy / "tables" / "members.jsonl"),
    "table a folder": lambda copy: folder(copy / "tables" / "members.jsonl"),
    "blob a link": lambda copy: link(a_blob(copy)),
    "tables a link": lambda copy: link_folder(copy / "tables"),
    "blobs a link": lambda copy: link_folder(copy / "blobs"),
}


@pytest.mark.threat(167)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_under_a_signature_is_refused_before_writing(
    change: Change, copy: Path, signer: Institution, place: Settings, tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(copy, changed)
    change(changed)
    done = run(place, "restore", changed, "--fingerprint", signer.key)
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit), "a sentence, and no traceback"
    assert left(place) == []
    assert n_tables(place) == 0
    done = run(place, "restore", copy, "--fingerprint", signer.key)
    assert done.exit_code == 0, done.output


@pytest.mark.threat(167)
def test_links_are_not_followed_even_with_a_new_signature(
    copy: Path, signer: Institution, place: Settings, tmp_path: Path
) -> None:
    """Also who holds the key cannot have files of the machine read."""
    outside = tmp_path / "outside"
    outside.write_bytes((copy / "identity.json").read_bytes())
    (copy / "identity.json").unlink()
    (copy / "identity.json").symlink_to(outside)
    sign_again(copy, signer)
    with pytest.raises(BackupFailed, match="a link or no file"):
        brought_back(copy, place)
    assert left(place) == []


# Whose backup it is


@pytest.mark.threat(168)
def test_a_backup_that_another_key_signed_is_not_used(
    copy: Path, signer: Institution, place: Settings
) -> None:
    """A changed credential with sums made anew, under a key of the attacker's own."""
    stranger = Institution("", b"s" * 32)
    table = copy / "tables" / "credentials.jsonl"
    table.write_text(table.read_text().replace('"secret_digest": "', '"label": "', 1))
    (copy / "identity.json").write_bytes(stranger.to_bytes())
    sign_again(copy, stranger)
    done = run(place, "restore", copy, "--fingerprint", signer.key)
    assert done.exit_code == 1
    assert fingerprint(stranger.key) in done.stderr
    assert n_tables(place) == 0
    assert left(place) == []


@pytest.mark.threat(168)
def test_a_program_names_the_fingerprint_and_a_person_is_asked(
    copy: Path, signer: Institution, place: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = run(place, "restore", copy)
    assert refused.exit_code == 1
    assert signer.key[:4] not in refused.output, "it has to come from elsewhere"
    assert run(place, "restore", copy, "--fingerprint", "ab12").exit_code == 2
    monkeypatch.setattr("analyst_service.cli.backups.is_terminal", lambda: True)
    words = [str(copy)]
    environment = {"COTERIE_DATA_DIR": str(place.data_dir), "COTERIE_DATABASE_URL": ""}
    for answer, code in (("n\n", 1), ("y\n", 0)):
        done = CliRunner().invoke(
            main, ["restore", *words], env=environment, input=answer
        )
        assert done.exit_code == code
        assert fingerprint(signer.key) in done.output


def test_what_backup_prints_is_what_restore_takes(
    api: Api, place: Settings, tmp_path: Path
) -> None:
    data = {"COTERIE_DATA_DIR": str(api.service.settings.data_dir)}
    data["COTERIE_DATABASE_URL"] = api.service.settings.database_url
    made = run(place, "backup", tmp_path / "monday", **data)
    printed = made.stderr.rpartition("key ")[2].strip(" .\n")
    assert printed == fingerprint(api.service.institution.key)
    done = run(place, "restore", tmp_path / "monday", "--fingerprint", printed)
    assert done.exit_code == 0, done.output


@pytest.mark.threat(168)
def test_a_key_that_was_kept_apart_is_needed_and_is_trusted(
    api: Api, signer: Institution, place: Settings, tmp_path: Path
) -> None:
    copy = tmp_path / "monday"
    backed_up(api, copy, with_key=False)
    private = signer.key_bytes.hex().encode()
    for path in copy.rglob("*"):
        assert path.is_dir() or private not in path.read_bytes()
    done = run(place, "restore", copy, "--fingerprint", signer.key)
    assert done.exit_code == 1
    assert "kept apart" in done.stderr
    apart = tmp_path / "apart.json"
    here = {"COTERIE_IDENTITY_FILE": str(apart)}
    load_identity(apart)  # which makes another one
    assert run(place, "restore", copy, **here).exit_code == 1
    apart.write_bytes(signer.to_bytes())
    done = run(place, "restore", copy, **here)
    assert done.exit_code == 0, done.output
    assert not (place.data_dir / "identity.json").exists()


def test_what_is_no_backup_is_said(tmp_path: Path, place: Settings) -> None:
    done = run(place, "restore", tmp_path)
    assert done.exit_code == 1
    assert "is no backup of an analyst" in done.stderr
    assert run(place, "migrate").exit_code == 0
    assert "with 0 blobs" in run(place, "backup", tmp_path / "copy").stderr
    again = run(place, "backup", tmp_path / "copy")
    assert again.exit_code == 1
    assert "exists already" in again.stderr


# One transaction


ROWS: dict[str, tuple[str, Change]] = {
    "no row": ("credentials", lambda table: append(table, "not json")),
    "a list": ("credentials", lambda table: append(table, "[]")),
    "a strange value": ("credentials", lambda table: append(table, '{"id": {"x": 1}}')),
    "a column": ("credentials", lambda table: append(table, '{"no_such_column": 1}')),
    "twice": (
        "credentials",
        lambda table: append(table, table.read_text().splitlines()[0]),
    ),
    "null": (
        "credentials",
        lambda table: table.write_text(
            table.read_text().replace('"created_at": {', '"created_at": null, "x": {')
        ),
    ),
    "another type": (
        "sessions",
        lambda table: table.write_text(
            table.read_text().replace('"round": 1', '"round": {"time": "1000-01-01"}')
        ),
    ),
    "links": ("principals", lambda table: table.write_text("")),
}


@pytest.mark.threat(169)
@pytest.mark.parametrize("kind", BOTH_DATABASES)
@pytest.mark.parametrize(("table", "change"), ROWS.values(), ids=ROWS)
def test_a_row_that_does_not_fit_is_neither_kept_nor_shown(
    kind: str,
    table: str,
    change: Change,
    api: Api,
    signer: Institution,
    databases: Databases,
    tmp_path: Path,
) -> None:
    """Even where the manifest is the analyst's own."""
    session = api.open(Dummy(), PARTS).join()
    made = run(
        api.service.settings, *("key", "create", "--label", SECRET_LABEL, "--json")
    )
    key_id = json.loads(made.stdout)["id"]
    good, broken = tmp_path / "good", tmp_path / "broken"
    backed_up(api, good)
    shutil.copytree(good, broken)
    change(broken / "tables" / f"{table}.jsonl")
    sign_again(broken, signer)
    with databases.empty(kind, tmp_path) as url:
        place = Settings(data_dir=tmp_path / "new", database_url=url)
        done = run(place, "restore", broken, "--fingerprint", signer.key)
        assert done.exit_code == 1
        assert isinstance(done.exception, SystemExit)
        for secret in (SECRET_LABEL, key_id, session.id, '"id"'):
            assert secret not in done.output
        assert left(place) == []
        assert n_tables(place) == 0
        done = run(place, "restore", good, "--fingerprint", signer.key)
        assert done.exit_code == 0, done.output
        listed = run(place, "key", "list").stdout
        assert SECRET_LABEL in listed


@pytest.mark.threat(169)
@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_tables_missing_from_a_signed_manifest_are_refused(
    kind: str, copy: Path, signer: Institution, databases: Databases, tmp_path: Path
) -> None:
    sign_again(copy, signer, tables={}, blobs=[])
    with databases.empty(kind, tmp_path) as url:
        place = Settings(data_dir=tmp_path / "new", database_url=url)
        with pytest.raises(BackupFailed, match="credentials"):
            brought_back(copy, place)
        assert n_tables(place) == 0


KILLED = """
import os, signal, sys
from analyst_service.backups import restoration
from party_sdk.cli import main

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

place = sys.argv[1]
if place == "rows":
    inner = restoration.load_rows
    restoration.load_rows = lambda *a: (inner(*a), die())
elif place == "blob":
    inner = restoration._WrittenFiles.copy
    restoration._WrittenFiles.copy = lambda *a: (inner(*a), die())
elif place == "key":
    inner = restoration._WrittenFiles.write_key
    restoration._WrittenFiles.write_key = lambda *a: (inner(*a), die())
elif place == "commit":
    restoration.check_parts = die
main(sys.argv[2:])
"""


@pytest.mark.threat(169)
@pytest.mark.parametrize("kind", BOTH_DATABASES)
@pytest.mark.parametrize("where", ["rows", "blob", "key", "commit"])
def test_a_restore_that_is_killed_is_done_again_or_is_done(
    where: str,
    kind: str,
    copy: Path,
    signer: Institution,
    databases: Databases,
    tmp_path: Path,
) -> None:
    words = ("restore", str(copy), "--fingerprint", signer.key)
    with databases.empty(kind, tmp_path) as url:
        place = Settings(data_dir=tmp_path / "new", database_url=url)
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, where, *words],
            env=os.environ
            | {
                "COTERIE_DATA_DIR": str(place.data_dir),
                "COTERIE_DATABASE_URL": url,
            },
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        if where == "commit":
            assert n_tables(place) > 10
        else:
            assert n_tables(place) == 0
            done = run(place, *words)
            assert done.exit_code == 0, done.output
        manifest = json.loads((copy / "manifest.json").read_text())
        blobs = FileBlobStore(place.data_dir / "blobs")
        assert blobs.have(manifest["blobs"])
        assert counted(place, "members") == manifest["tables"]["members"]["rows"]
        assert run(place, "config", "adopt", "store").exit_code == 0


def counted(place: Settings, table: str) -> int:
    with closing(Database(place.database)) as database, database.read() as read:
        return read.scalar(sa.text(f"SELECT count(*) FROM {table}")) or 0


@pytest.mark.postgres
@pytest.mark.threat(169)
def test_of_two_restores_at_once_one_is_done_and_is_whole(
    copy: Path, databases: Databases, tmp_path: Path
) -> None:
    start = Barrier(2)
    with databases.empty("postgresql", tmp_path) as url:
        place = Settings(data_dir=tmp_path / "new", database_url=url)

        def go() -> bool:
            start.wait()
            try:
                brought_back(copy, place)
            except BackupFailed:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            done = [each.result() for each in [pool.submit(go) for _ in range(2)]]
        assert sorted(done) == [False, True]
        manifest = json.loads((copy / "manifest.json").read_text())
        assert FileBlobStore(place.data_dir / "blobs").have(manifest["blobs"])
        assert place.identity_path.exists()


def test_a_store_of_another_database_is_not_restored_into(
    copy: Path, place: Settings, tmp_path: Path
) -> None:
    brought_back(copy, place)
    other = Settings(data_dir=place.data_dir, database_url=f"sqlite:///{tmp_path}/o.db")
    with pytest.raises(BackupFailed, match="another database"):
        brought_back(copy, other)
    assert n_tables(other) == 0
    assert FileBlobStore(place.data_dir / "blobs").mark() is not None


def test_a_database_that_refuses_a_row_does_not_show_it(
    api: Api,
) -> None:
    """Nowhere: what an engine raises holds the statement alone."""
    broken = sa.text("SELECT * FROM none WHERE x = :x")
    with (
        api.service.database.engine.connect() as connection,
        pytest.raises(sa.exc.DBAPIError) as refused,
    ):
        connection.execute(broken, {"x": SECRET_LABEL})
    assert isinstance(refused.value.orig, sqlite3.Error | psycopg.Error)
    assert SECRET_LABEL not in str(refused.value)


# For a recipient


@pytest.fixture
def recipient(tmp_path: Path) -> tuple[str, Path]:
    """A public key, and the file of its private half as age-keygen writes it."""
    key = pyrage.x25519.Identity.generate()
    file = tmp_path / "recovery.txt"
    file.write_text(f"# created: today\n# public key: {key.to_public()}\n{key}\n")
    return str(key.to_public()), file


@pytest.mark.threat(170)
def test_an_encrypted_backup_opens_for_its_recipient_alone(
    api: Api,
    signer: Institution,
    recipient: tuple[str, Path],
    place: Settings,
    tmp_path: Path,
) -> None:
    public, private = recipient
    session = api.open(Dummy(), PARTS).join()
    session.put(A, session.reply(A))
    here = {
        "COTERIE_DATA_DIR": str(api.service.settings.data_dir),
        "COTERIE_DATABASE_URL": api.service.settings.database_url,
    }
    copy = tmp_path / "monday"
    made = run(place, "backup", copy, "--recipient", public, **here)
    assert made.exit_code == 0, made.output
    files = [path for path in copy.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".age"}
    assert all(path.read_bytes().startswith(b"age-encryption.org/v1") for path in files)
    words = ("restore", copy, "--fingerprint", signer.key)
    assert run(place, *words).exit_code == 2
    other = tmp_path / "other.txt"
    other.write_text(f"{pyrage.x25519.Identity.generate()}\n")
    for wrong in (other, copy / "manifest.json.age"):
        done = run(place, *words, "--decryption-key", wrong)
        assert done.exit_code == 1
        assert "Traceback" not in done.output
    done = run(place, *words, "--decryption-key", private)
    assert done.exit_code == 0, done.output
    names = {path.split("/")[0] for path in left(place)}
    assert names == {"blobs", "identity.json"}


@pytest.mark.threat(170)
@pytest.mark.parametrize("cut", [1, 16, 65_552])
def test_an_encrypted_backup_that_was_cut_or_changed_is_refused(
    cut: int,
    api: Api,
    signer: Institution,
    recipient: tuple[str, Path],
    place: Settings,
    tmp_path: Path,
) -> None:
    public, private = recipient
    api.open(Dummy(), PARTS).join()
    copy = tmp_path / "monday"
    backed_up(api, copy, encryption=Encryption([public]))
    largest = max(copy.rglob("*.age"), key=lambda path: path.stat().st_size)
    content = largest.read_bytes()
    largest.write_bytes(content[: -min(cut, len(content) // 2)])
    words = ("--fingerprint", signer.key, "--decryption-key", private)
    done = run(place, "restore", copy, *words)
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert left(place) == []


def test_no_recipient_is_said(place: Settings, tmp_path: Path) -> None:
    assert run(place, "migrate").exit_code == 0
    done = run(place, "backup", tmp_path / "copy", "--recipient", "age1nobody")
    assert done.exit_code == 1
    assert "age-keygen" in done.stderr
    assert not (tmp_path / "copy").exists()


def test_a_backup_is_for_this_user_alone(copy: Path) -> None:
    for path in (copy, *copy.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_folder_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    def breaking() -> Iterator[bytes]:
        yield b"1"
        raise ZeroDivisionError

    with NewFolder(tmp_path / "x", None) as folder:
        with pytest.raises(ZeroDivisionError):
            folder.write("a", breaking())
        assert not (tmp_path / "x").exists()
    assert list(tmp_path.iterdir()) == []
