"""Blobs in an object store: durability, the local cache, and failures."""

import os
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore, S3Store

from analyst_service.object_store import ObjectBlobStore, open_objects
from analyst_service.retention import find_live_digests, sweep
from clustering_protocols.common.errors import StorageFull, Unavailable
from clustering_protocols.protocols.dummy import Dummy
from tests.party.small_servers import SmallHandler, serving
from tests.service.samples import PARTS

DIGEST = sha256(b"x").hexdigest()
NAME = f"{DIGEST[:2]}/{DIGEST}"


@pytest.fixture
def objects() -> MemoryStore:
    return MemoryStore()


def over(objects: Any, cache: Path, cache_bytes: int = 1 << 30) -> ObjectBlobStore:
    return ObjectBlobStore(objects, cache, cache_bytes)


@pytest.fixture
def blobs(objects: MemoryStore, tmp_path: Path) -> ObjectBlobStore:
    return over(objects, tmp_path / "cache")


def cached(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("content", [b"", bytes(3 << 20)], ids=len)
def test_a_blob_is_found_by_its_digest_from_every_cache(
    blobs: ObjectBlobStore, objects: MemoryStore, tmp_path: Path, content: bytes
) -> None:
    digest = blobs.put(content)
    assert digest == sha256(content).hexdigest()
    for store in (blobs, over(objects, tmp_path / "another machine")):
        assert store.has(digest)
        assert bytes(store.map(digest)) == content
        assert store.local_file(digest).read_bytes() == content
    assert list(blobs.find_older_than(-60)) == [digest]
    assert list(blobs.find_older_than(60)) == []
    obstore.delete(objects, f"{digest[:2]}/{digest}")
    assert not blobs.has(digest), "though a copy is left"
    with pytest.raises(KeyError):
        over(objects, tmp_path / "a third").map(digest)


def test_a_draft_is_an_object_before_it_counts(
    objects: MemoryStore, tmp_path: Path
) -> None:
    """If the process is killed in between, only the cached copy is missing."""
    order = []

    class Watched(ObjectBlobStore):
        def prepare_path(self, digest: str) -> Path:
            order.append([*_names(objects)])
            return super().prepare_path(digest)

    store = Watched(objects, tmp_path, 1 << 30)
    draft = store.create_draft()
    draft.write(b"x")
    draft.seal()
    assert _names(objects) == []
    draft.prepare_to_store()
    obstore.delete(objects, NAME)  # the same bytes were removed meanwhile
    draft.store_as_blob()
    draft.store_as_blob()  # may be repeated
    draft.discard()
    assert order == [[NAME]]


def _names(objects: Any) -> list[str]:
    return [each["path"] for some in obstore.list(objects) for each in some]


def test_what_a_store_changed_is_noticed_and_never_used(
    blobs: ObjectBlobStore, objects: MemoryStore, tmp_path: Path
) -> None:
    blobs.put(b"x")
    for wrong in (b"y", b"", b"xx"):
        obstore.put(objects, NAME, wrong)
        other = over(objects, tmp_path / f"other {len(wrong)}{wrong!r}")
        with pytest.raises(Unavailable, match="does not match its digest"):
            other.map(DIGEST)
        assert cached(tmp_path / f"other {len(wrong)}{wrong!r}") == []
    assert bytes(blobs.map(DIGEST)) == b"x"  # the copy was written here


def test_a_removed_blob_leaves_other_caches_with_the_sweep(
    blobs: ObjectBlobStore, objects: MemoryStore, tmp_path: Path
) -> None:
    other = over(objects, tmp_path / "other")
    kept = blobs.put(b"kept")
    blobs.put(b"x")
    for digest in (kept, DIGEST):
        other.map(digest)
    blobs.remove(DIGEST)
    blobs.remove(DIGEST)
    assert cached(tmp_path / "cache") == [kept]
    other.sweep(-60, {kept})
    assert cached(tmp_path / "other") == [kept]
    assert blobs.has(kept)


def test_the_cache_keeps_what_was_used_last(
    objects: MemoryStore, tmp_path: Path
) -> None:
    store = over(objects, tmp_path / "cache", cache_bytes=2500)
    digests = [store.put(bytes([n]) * 1000) for n in range(4)]
    for age, digest in enumerate(digests):
        os.utime(tmp_path / "cache" / digest[:2] / digest, (1000 - age, 1000 - age))
    store.map(digests[3])
    store.sweep(60, set(digests))
    assert cached(tmp_path / "cache") == sorted([digests[0], digests[3]])
    assert all(bytes(store.map(digest)) for digest in digests)  # fetched again


@pytest.fixture
def answering(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An S3 store whose server gives the parametrised answer to every request."""
    status, body = request.param

    class Answer(SmallHandler):
        def _say(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.answer(status, body)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _say  # noqa: N815  the server's own form

    with serving(Answer) as url:
        yield S3Store(
            "bucket",
            endpoint=url,
            access_key_id="a-key",
            secret_access_key="a-secret",
            region="here",
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )


QUOTA = "<Error><Code>QuotaExceeded</Code></Error>"


@pytest.mark.parametrize(
    ("answering", "raised"),
    [
        ((403, "<Error><Code>AccessDenied</Code></Error>"), Unavailable),
        ((503, ""), Unavailable),
        ((403, QUOTA), StorageFull),
        ((507, ""), StorageFull),
    ],
    indirect=["answering"],
    ids=["wrong secret", "busy", "quota", "full"],
)
def test_what_goes_wrong_has_one_of_our_names_and_leaves_no_blob(
    answering: Any,
    raised: type[Exception],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    blobs = over(answering, tmp_path / "cache")
    with pytest.raises(raised) as refused:
        blobs.put(b"x")
    said = f"{refused.value} {caplog.text}"
    assert "127.0.0.1" not in said
    assert "a-secret" not in said
    assert cached(tmp_path / "cache") == []
    with pytest.raises(raised):
        blobs.check_writable()


def test_a_full_store_can_be_swept(
    blobs: ObjectBlobStore, objects: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs.put(b"x")

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(obstore, "put", refuse)
        assert list(blobs.find_older_than(-60)) == [], "there is no time to compare"
    blobs.check_writable()
    monkeypatch.setattr(obstore, "put", refuse)
    assert list(blobs.find_older_than(60)) == []
    for digest in blobs.find_older_than(-60):
        blobs.remove(digest)
    assert NAME not in _names(objects)


@pytest.mark.parametrize(
    "answering",
    [
        (404, "<Error><Code>NoSuchBucket</Code></Error>"),
        (404, "<Error><Code>ContainerNotFound</Code></Error>"),
    ],
    indirect=True,
)
def test_a_missing_bucket_is_an_outage_and_not_a_missing_object(
    answering: Any, tmp_path: Path
) -> None:
    blobs = over(answering, tmp_path / "cache")
    for use in (
        blobs.check_writable,
        blobs.read_mark,
        lambda: blobs.write_mark("mark"),
        lambda: blobs.map(DIGEST),
        lambda: blobs.put(b"x"),
        lambda: list(blobs.find_older_than(-60)),
    ):
        with pytest.raises(
            Unavailable, match="bucket of the object store does not exist"
        ):
            use()


@pytest.mark.parametrize("url", ["nothing://here", "s3://", "bucket"])
def test_an_address_of_no_store_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(Unavailable, match="COTERIE_BLOB_STORE"):
        open_objects(url)


@pytest.mark.usefixtures("in_blobs")
def test_an_analyst_keeps_all_arrays_in_the_store(
    start_api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    with start_api(blob_store=folder.as_uri()) as api:
        session = api.open(Dummy(n_clusters=3), PARTS).join()
        session.answer()
        assert len(list(folder.rglob("*"))) > 5
        for path in api.service.settings.blob_location.folder.glob("??/*"):
            path.unlink()  # as on another machine, which has no copy
        session.finish()
        assert session.status["state"] == "completed"
        result = api.send("GET", f"{session.path}/result", session.key)
        assert result.status_code == 200
        monkeypatch.setattr("analyst_service.retention.ORPHAN_AGE", timedelta(-1))
        sweep(api.service)
        left = {path.name for path in folder.rglob("*") if path.is_file()}
        assert left <= api.service.database.query(find_live_digests) | {"probe"}
