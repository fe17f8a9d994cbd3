"""Backups of both databases are complete or absent, and are restored only if empty."""

import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from support import warm
from support.databases import BOTH_DATABASES, Databases, on_both_databases
from support.in_process import Api, ByHand, in_process

from analyst_service.blobs import FileBlobStore
from analyst_service.database import Database
from analyst_service.identity import load_or_create_identity
from analyst_service.models import Contribution
from analyst_service.retention import find_live_digests
from analyst_service.settings import Settings
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.identities import Institution
from coterie.build import find_schema
from tests.service.samples import PARTS, A, B, command as run, environment_of

SECRET_LABEL = "Dr Secret of ward 3"
Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def api(
    database_kind: str, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("original")
    with (
        databases.current(database_kind, folder) as url,
        in_process(folder / "api", url) as running,
    ):
        session = running.open(Dummy(), PARTS).join()
        session.put(A, session.reply(A))
        label = ("key", "create", "--label", SECRET_LABEL)
        assert run(running.service.settings, *label).exit_code == 0
        yield running


@pytest.fixture(scope="module")
def copy(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "monday"
    done = run(api.service.settings, "backup", folder)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def place(
    database_kind: str, databases: Databases, tmp_path: Path
) -> Iterator[Settings]:
    """The settings of an empty analyst with the same kind of database."""
    (tmp_path / "other").mkdir()
    with databases.empty(database_kind, tmp_path / "other") as url:
        yield Settings(data_dir=tmp_path / "new", database_url=url)


def refused(place: Settings, copy: Path) -> str:
    done = run(place, "restore", copy)
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit), "a sentence, and no traceback"
    return done.stderr


@on_both_databases
def test_a_session_continues_from_a_backup_made_under_load(
    databases: Databases, tmp_path: Path, database_kind: str, place: Settings
) -> None:
    """While the backup is made, uploads arrive and sessions end."""
    copy = tmp_path / "copy"
    with (
        databases.current(database_kind, tmp_path) as url,
        in_process(tmp_path / "a", url) as api,
    ):
        session = api.open(Dummy(), PARTS).join()
        session.put(A, session.reply(A))
        acknowledged: list[str] = []
        with loaded(api, acknowledged):
            early = set(acknowledged)
            done = run(api.service.settings, "backup", copy)
        assert done.exit_code == 0, done.output
        known = (
            dict(session.journals),
            {s: dict(m) for s, m in session.memories.items()},
        )
        ended = finished(session)
    restored = run(place, "restore", copy)
    assert restored.exit_code == 0, restored.output
    with in_process(place.data_dir, place.database_url) as api:
        session.api = api
        session.journals, session.memories = known
        assert finished(session) == ended, "the same bytes, from the same uploads"
        with api.service.database.read() as transaction:
            named = set(transaction.scalars(sa.select(Contribution.digest)))
            live = find_live_digests(transaction)
        assert early <= named, "what was acknowledged before is there"
        assert all(map(api.service.blobs.has, live))


@contextmanager
def loaded(api: Api, acknowledged: list[str]) -> Iterator[None]:
    """Open, answer and end sessions in a thread while the block runs."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            session = api.open(Dummy(), PARTS).join()
            for slot in (A, B):
                receipt = session.put(slot, session.reply(slot))
                acknowledged.append(receipt.json()["digest"])
            api.turn()

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            while len(acknowledged) < 6:
                time.sleep(0.01)
            yield
        finally:
            stop.set()
            working.result()


def finished(session: ByHand) -> bytes:
    """Let B answer, run the session to its end, and return A's result."""
    session.answer(B)
    while (state := session.status["state"]) != "completed":
        if state == "collecting":
            session.answer()
        else:  # a session that was busy when the backup was made may come first
            session.api.turn()
    return session.api.send("GET", f"{session.path}/result", session.tokens[A]).content


def test_a_backup_and_what_is_restored_are_for_this_user_alone(
    copy: Path, api: Api, place: Settings
) -> None:
    again = run(api.service.settings, "backup", copy)
    assert again.exit_code == 1
    assert "already exists" in again.stderr, "a folder is never written over"
    assert run(place, "restore", copy).exit_code == 0
    for folder in (copy, place.data_dir):
        for path in (folder, *folder.rglob("*")):
            assert path.stat().st_mode & 0o077 == 0, path
    assert place.identity_path.stat().st_mode & 0o777 == 0o600


KILLED = """
import os, signal, sys
from analyst_service import backups
from party_sdk.cli import main

inner = getattr(backups, sys.argv[1])

def die(*words):
    inner(*words)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(backups, sys.argv[1], die)
main(sys.argv[2:])
"""


def kill_after(place: Settings, function: str, *words: str | Path) -> None:
    program = place.data_dir.parent / "killed.py"
    program.write_text(KILLED)
    killed = subprocess.run(
        [*warm.command(str(program)), function, *map(str, words)],
        env=os.environ | environment_of(place),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr


@pytest.mark.threat(169)
@pytest.mark.parametrize("function", ["_copy_blob", "write_identity"])
@pytest.mark.quick(2)
def test_a_backup_that_is_killed_leaves_nothing_that_looks_whole(
    function: str, api: Api, place: Settings, tmp_path: Path
) -> None:
    target = tmp_path / "tuesday"
    kill_after(api.service.settings, function, "backup", target)
    assert not target.exists()
    [draft] = tmp_path.glob(".tuesday.*")
    assert "is not a backup of an analyst" in refused(place, draft)


def test_a_backup_that_fails_leaves_nothing(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("analyst_service.backups.write_identity", fail)
    done = run(api.service.settings, "backup", tmp_path / "tuesday")
    assert done.exit_code == 1
    assert "cannot be written: No space left on device" in done.stderr
    assert not list(tmp_path.glob("*tuesday*"))


def test_an_analyst_that_is_there_is_never_written_over(
    copy: Path, api: Api, place: Settings
) -> None:
    before = api.stored()
    assert "analyst exists here already" in refused(api.service.settings, copy)
    assert api.stored() == before
    key = load_or_create_identity(place.identity_path).key
    assert "contains another key" in refused(place, copy)
    assert load_or_create_identity(place.identity_path).key == key
    place.identity_path.unlink()
    FileBlobStore(place.data_dir / "blobs").write_mark("of another database")
    assert "another database" in refused(place, copy)
    assert FileBlobStore(place.data_dir / "blobs").read_mark() == "of another database"
    assert "no schema yet" in run(place, "key", "list").stderr


@on_both_databases
def test_a_migrated_database_without_rows_counts_as_empty(
    copy: Path, place: Settings
) -> None:
    """With Docker, the schema is created before any other command."""
    assert run(place, "migrate").exit_code == 0
    done = run(place, "restore", copy)
    assert done.exit_code == 0, done.output
    assert SECRET_LABEL in run(place, "key", "list").stdout
    assert "analyst exists here already" in refused(place, copy)


@on_both_databases
def test_a_database_with_a_table_of_another_program_is_never_filled(
    copy: Path, place: Settings
) -> None:
    engine = sa.create_engine(place.database)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE wards (name text)")
    assert "analyst exists here already" in refused(place, copy)
    assert sa.inspect(engine).get_table_names() == ["wards"]
    engine.dispose()


def damage_database(copy: Path) -> None:
    path = copy / "database.db"
    if path.exists():
        content = bytearray(path.read_bytes())
        content[5000:9000] = bytes(4000)
        path.write_bytes(content)
    else:
        table = copy / "tables" / "credentials"
        table.write_text(table.read_text().replace("\t", "\tx\t"))


def cut_database(copy: Path) -> None:
    path = copy / "database.db"
    if not path.exists():
        path = copy / "tables" / "sessions"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def remove_sessions(copy: Path) -> None:
    with closing(sqlite3.connect(copy / "database.db")) as database:
        database.execute("DELETE FROM sessions")
        database.commit()


def written(name: str, content: bytes) -> Change:
    return lambda copy: (copy / name).write_bytes(content)


def a_blob(copy: Path) -> Path:
    return next(path for path in (copy / "blobs").rglob("*") if path.is_file())


def described(old: str, new: str) -> Change:
    return lambda copy: (copy / "backup.json").write_text(
        (copy / "backup.json").read_text().replace(old, new)
    )


CHANGES: dict[str, tuple[Change, str]] = {
    "no blob": (lambda copy: a_blob(copy).unlink(), "cannot be restored"),
    "another blob": (
        lambda copy: a_blob(copy).write_bytes(b"x"),
        "not match its digest",
    ),
    "no key": (lambda copy: (copy / "identity.json").unlink(), "cannot be restored"),
    "half a key": (written("identity.json", b"{"), "is not a key"),
    "another key": (
        written("identity.json", Institution("", b"x" * 32).to_bytes()),
        "not the key of its database",
    ),
    "no description": (written("backup.json", b"{}"), "is not a backup"),
    "a deep one": (written("backup.json", b"[" * 100_000), "is not a backup"),
    "another kind of database": (
        described('"sqlite"', '"another"'),
        "COTERIE_DATABASE_URL",
    ),
    "rows without their session": (remove_sessions, "is damaged"),
    "an unknown schema": (
        described(f'"{find_schema()}"', '"9999:head --sql"'),
        "schema 9999",
    ),
}
DATABASES = {
    "a damaged database": (damage_database, "is damaged"),
    "half a database": (cut_database, "is damaged"),
}
REFUSED = [pytest.param("sqlite", *case, id=name) for name, case in CHANGES.items()] + [
    pytest.param(*kind.values, *case, id=f"{name}, {kind.values[0]}", marks=kind.marks)
    for kind in BOTH_DATABASES
    for name, case in DATABASES.items()
]


@pytest.mark.threat(167)
@pytest.mark.parametrize(
    ("database_kind", "change", "sentence"), REFUSED, indirect=["database_kind"]
)
@pytest.mark.quick(4)
def test_a_damaged_backup_is_refused_in_a_sentence_without_a_row(
    change: Change, sentence: str, copy: Path, place: Settings, tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(copy, changed)
    change(changed)
    said = refused(place, changed)
    assert sentence in said
    assert SECRET_LABEL not in said
    assert run(place, "restore", copy).exit_code == 0, "the database was empty still"
    assert SECRET_LABEL in run(place, "key", "list").stdout


@on_both_databases
@pytest.mark.threat(169)
@pytest.mark.parametrize("function", ["_copy_blob", "_restore_blobs_and_key"])
@pytest.mark.quick(2)
def test_a_restore_that_is_killed_is_done_again(
    function: str, copy: Path, api: Api, place: Settings
) -> None:
    kill_after(place, function, "restore", copy)
    done = run(place, "restore", copy)
    assert done.exit_code == 0, done.output
    keys = [run(where, "key", "list").stdout for where in (place, api.service.settings)]
    assert keys[0] == keys[1]
    with closing(Database(place.database)) as database, database.read() as read:
        live = find_live_digests(read)
    assert FileBlobStore(place.data_dir / "blobs").has_all(live)
