"""A real object store, Ceph's, under several analysts: what it does when it is troubled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import obstore
import pytest
from support.analyst_process import Analyst, wait_for
from support.databases import Databases
from support.repeats import on_command

from analyst_service.blobs.objects import ObjectBlobStore, open_objects
from clustering_protocols.common.errors import StorageFull, Unavailable
from tests.system.http.ceph import Ceph, ceph
from tests.system.http.several import (
    arrived,
    assert_whole,
    fleet,
    gatherer,
    start_sessions,
)

pytestmark = on_command("stores of Ceph")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ceph]:
    with ceph(tmp_path_factory.mktemp("ceph") / "store") as running:
        yield running


@pytest.fixture
def objects(store: Ceph, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return open_objects(store.address)


@pytest.fixture
def blobs(objects: Any, tmp_path: Path) -> ObjectBlobStore:
    return ObjectBlobStore(objects, tmp_path / "cache", 1 << 30)


@pytest.mark.postgres
def test_analysts_and_the_gateway_are_killed_and_nothing_is_lost(
    store: Ceph, databases: Databases, tmp_path: Path
) -> None:
    with (
        databases.current("postgresql", tmp_path) as url,
        fleet(tmp_path, url, store.address, environment=store.environment) as several,
        gatherer(several, tmp_path / "home", "over-ceph") as gather,
    ):
        crowds = start_sessions(gather)
        for number, analyst in enumerate(several.analysts):
            wait_for(lambda: arrived(several, crowds) >= 15 * (number + 1))  # noqa: B023  waited for at once
            analyst.kill()
            several.on_new_host(analyst)
        store.kill_gateway()
        wait_for(lambda: not is_ready(several.analysts[0]), 60)
        store.start_gateway()
        wait_for(lambda: is_ready(several.analysts[0]), 60)
        for crowd in crowds:
            assert_whole(crowd)


def is_ready(analyst: Analyst) -> bool:
    return httpx.get(f"{analyst.url}/readyz", timeout=60).status_code == 200


def test_with_a_wrong_secret_nothing_is_read_or_written(
    store: Ceph,
    blobs: ObjectBlobStore,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    digest = blobs.put(b"kept")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another secret")
    stranger = open_objects(store.address)
    others = ObjectBlobStore(stranger, tmp_path / "other", 1 << 30)
    for refused in (
        others.check,
        lambda: others.put(b"x"),
        lambda: others.map(digest),
        lambda: list(others.older(4e9)),
    ):
        with pytest.raises(Unavailable, match="The object store"):
            refused()


def test_a_lost_object_and_a_half_written_one_are_no_blobs(
    store: Ceph, objects: Any, blobs: ObjectBlobStore, tmp_path: Path
) -> None:
    other = ObjectBlobStore(objects, tmp_path / "other", 1 << 30)
    digest = blobs.put(b"lost")
    obstore.delete(objects, f"{digest[:2]}/{digest}")
    assert not other.has(digest)
    with pytest.raises(KeyError):
        other.map(digest)
    content = bytes(range(256)) * (1 << 15)
    whole = blobs.put(content)
    name = f"{whole[:2]}/{whole}"
    obstore.delete(objects, name)
    # parts arrive, and the one who sends them dies before the last
    writer = obstore.open_writer(objects, name, buffer_size=5 << 20)
    writer.write(content)
    store.kill_gateway()
    store.start_gateway()
    assert not other.has(whole)
    assert whole not in set(other.older(4e9))
    assert other.put(content) == whole
    assert bytes(other.map(whole)) == content


def test_a_full_store_says_so_and_takes_more_once_there_is_room(
    store: Ceph, blobs: ObjectBlobStore
) -> None:
    blobs.put(b"something")
    store.limit(4096)
    try:
        with pytest.raises(StorageFull):
            blobs.put(bytes(8192))
    finally:
        store.limit(-1)
    digest = blobs.put(b"there is room")
    assert blobs.has(digest)
