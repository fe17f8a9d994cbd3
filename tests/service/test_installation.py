"""A database records one key and one blob store, and refuses others from then on."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest
from obstore.store import MemoryStore
from support.databases import BOTH_DATABASES, Databases, write_current_file
from support.in_process import Api

from analyst_service.blobs import FileBlobStore
from analyst_service.database import Database
from analyst_service.identity import load_or_create_identity
from analyst_service.installation import (
    InstallationMismatch,
    KeyMismatch,
    StoreMismatch,
    adopt_key,
    adopt_store,
    check_installation,
)
from analyst_service.object_store import ObjectBlobStore
from analyst_service.settings import Settings
from clustering_protocols.protocols.dummy import Dummy
from tests.service.samples import PARTS, A, command

OURS, OTHERS = "a" * 64, "b" * 64
Stores = Callable[[str], FileBlobStore]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    write_current_file(tmp_path / "test.db")
    with closing(Database(f"sqlite:///{tmp_path / 'test.db'}")) as database:
        yield database


@pytest.fixture(params=["files", "objects"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """Return a function that opens blob stores by name."""
    places: dict[str, MemoryStore] = {}

    def open_store(name: str) -> FileBlobStore:
        if request.param == "files":
            return FileBlobStore(tmp_path / name)
        cache = tmp_path / f"{name}-cache"
        return ObjectBlobStore(places.setdefault(name, MemoryStore()), cache, 1 << 20)

    return open_store


@pytest.mark.threat(171)
def test_the_first_start_adopts_and_others_are_refused(
    database: Database, stores: Stores
) -> None:
    check_installation(database, OURS, stores("one"))
    check_installation(database, OURS, stores("one"))
    with pytest.raises(KeyMismatch) as refused:
        check_installation(database, OTHERS, stores("one"))
    assert (refused.value.expected, refused.value.actual) == (OURS, OTHERS)
    with pytest.raises(StoreMismatch):
        check_installation(database, OURS, stores("another"))
    assert stores("another").read_mark() is None, "nothing was written there"
    store = stores("one")
    assert store.read_mark() is not None
    store.sweep(float("inf"), set())
    assert store.read_mark() not in {None, *store.find_older_than(-60)}, "it is no blob"


@pytest.mark.threat(171)
def test_a_moved_store_is_accepted_and_an_emptied_one_refused(
    database: Database, tmp_path: Path
) -> None:
    check_installation(database, OURS, FileBlobStore(tmp_path / "one"))
    shutil.move(tmp_path / "one", tmp_path / "moved")
    check_installation(database, OURS, FileBlobStore(tmp_path / "moved"))
    with pytest.raises(StoreMismatch, match="no mark"):
        check_installation(database, OURS, FileBlobStore(tmp_path / "one"))


@pytest.mark.threat(171)
def test_a_store_of_another_database_is_not_adopted(
    database: Database, stores: Stores, tmp_path: Path
) -> None:
    other = Database(f"sqlite:///{tmp_path / 'other.db'}")
    other.migrate()
    check_installation(other, OTHERS, stores("one"))
    with pytest.raises(StoreMismatch, match="another database"):
        check_installation(database, OURS, stores("one"))
    check_installation(other, OTHERS, stores("one"))
    check_installation(database, "c" * 64, stores("two"))  # nothing was adopted
    other.close()


def test_a_start_that_died_before_noting_the_mark_is_repeated(
    database: Database, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    class DiedError(Exception):
        pass

    store = stores("one")
    inner = type(store).write_mark

    def die(self: FileBlobStore, name: str) -> None:
        inner(self, name)
        raise DiedError

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "write_mark", die)
        with pytest.raises(DiedError):
            check_installation(database, OURS, store)
    check_installation(database, OURS, store)
    assert store.read_mark() is not None


@pytest.mark.threat(171)
@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_simultaneous_starts_agree_on_one_key_and_one_store(
    kind: str, databases: Databases, tmp_path: Path
) -> None:
    n, start = 6, Barrier(6)

    def begin(number: int) -> tuple[str, str | None] | None:
        key, place = (OURS, OTHERS)[number % 2], tmp_path / f"store-{number % 3}"
        with closing(Database(Settings(database_url=url).database)) as own:
            start.wait()
            try:
                check_installation(own, key, FileBlobStore(place))
            except InstallationMismatch:
                return None
            return key, FileBlobStore(place).read_mark()

    with databases.current(kind, tmp_path) as url, ThreadPoolExecutor(n) as pool:
        started = {each for each in pool.map(begin, range(n)) if each}
    assert len(started) == 1, "one is the first, and all agree with it"
    marked = [i for i in range(3) if (tmp_path / f"store-{i}" / "mark").exists()]
    assert len(marked) == 1


@pytest.mark.threat(171)
def test_an_adopted_key_or_store_makes_the_earlier_one_foreign(
    database: Database, stores: Stores
) -> None:
    check_installation(database, OURS, stores("one"))
    adopt_key(database, OTHERS)
    check_installation(database, OTHERS, stores("one"))
    with pytest.raises(KeyMismatch):
        check_installation(database, OURS, stores("one"))
    adopt_store(database, OTHERS, stores("two"))
    check_installation(database, OTHERS, stores("two"))
    with pytest.raises(StoreMismatch):
        check_installation(database, OTHERS, stores("one"))


@pytest.mark.usefixtures("serves")
def test_no_command_replaces_a_missing_key_that_the_database_records(
    api: Api, tmp_path: Path
) -> None:
    run = partial(command, api.service.settings)
    assert run("serve").exit_code == 0
    missing = tmp_path / "missing.json"
    for words in ("serve", f"backup {tmp_path / 'copy'}", "config adopt store"):
        done = run(*words.split(), COTERIE_IDENTITY_FILE=missing)
        assert done.exit_code == 1
        assert f"The analyst's key {missing} is missing." in done.stderr
        assert "adopt key" not in done.stderr
        assert not missing.exists()


@pytest.mark.threat(171)
@pytest.mark.usefixtures("serves")
def test_serve_and_backup_name_the_wrong_setting_and_the_remedy(
    api: Api, tmp_path: Path
) -> None:
    run = partial(command, api.service.settings)
    session = api.open(Dummy(), PARTS).join()
    session.put(A, session.reply(A))
    assert run("serve").exit_code == 0
    other, elsewhere = tmp_path / "other.json", tmp_path / "elsewhere"
    load_or_create_identity(other)
    key = api.service.settings.identity_path
    for words in (["serve"], ["backup", str(tmp_path / "copy")]):
        done = run(*words, COTERIE_IDENTITY_FILE=other)
        assert done.exit_code == 1
        assert "COTERIE_IDENTITY_FILE" in done.stderr
        assert "coterie config adopt key" in done.stderr
        done = run(*words, COTERIE_IDENTITY_FILE=key, COTERIE_DATA_DIR=elsewhere)
        assert done.exit_code == 1
        assert "COTERIE_DATA_DIR" in done.stderr
        assert "coterie config adopt store" in done.stderr
    assert not (tmp_path / "copy").exists()
    here = {"COTERIE_IDENTITY_FILE": key, "COTERIE_DATA_DIR": elsewhere}
    refused = run("config", "adopt", "store", **here)
    assert refused.exit_code == 1
    assert "lacks arrays" in refused.stderr
    shutil.copytree(
        api.service.settings.data_dir / "blobs", elsewhere / "blobs", dirs_exist_ok=True
    )
    (elsewhere / "blobs" / "mark").unlink()
    assert run("serve", **here).exit_code == 1
    adopted = run("config", "adopt", "store", **here)
    assert adopted.exit_code == 0
    assert '"message": "adopted"' in adopted.stderr
    assert run("serve", **here).exit_code == 0
    assert run("serve").exit_code == 1
