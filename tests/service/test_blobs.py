"""The contract of the blob store, on files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import numpy as np
import pytest

from analyst_service.blobs.files import FileBlobStore, FileDraft, map_file, trim_pages
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import StorageFull
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout

if TYPE_CHECKING:
    from support.in_process import Api

CONTENTS = [b"", b"x", bytes(range(256)), bytes(3 << 20)]
DIGEST = sha256(b"x").hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobs(root: Path) -> FileBlobStore:
    return FileBlobStore(root)


def files(root: Path) -> list[str]:
    """All files, by their names."""
    return sorted(path.name for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("content", CONTENTS, ids=len)
def test_a_blob_is_found_by_its_digest(
    blobs: FileBlobStore, root: Path, content: bytes
) -> None:
    digest = blobs.put(content)
    assert digest == sha256(content).hexdigest()
    assert bytes(blobs.map(digest)) == content
    assert files(root) == [digest]


def test_equal_bytes_are_kept_once(blobs: FileBlobStore, root: Path) -> None:
    assert blobs.put(b"x") == blobs.put(b"x")
    assert files(root) == [DIGEST]


def test_a_blob_is_named_only_after_its_folder_is_synced(
    blobs: FileBlobStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the folder is there: who made it may not have synced it yet."""
    blobs.put(b"x")
    order: list[object] = []
    folder, replace, sync = root / DIGEST[:2], Path.replace, os.fsync

    def named(path: Path, target: Path) -> Path:
        order.append("named")
        return replace(path, target)

    def synced(descriptor: int) -> None:
        order.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(Path, "replace", named)
    monkeypatch.setattr(os, "fsync", synced)
    other = FileBlobStore(root)
    other.put(b"x")
    assert order[1:] == [root, "named", folder]
    order.clear()
    other.put(b"x")
    assert order[1:] == ["named", folder], "its folder is synced into the root once"


def test_a_blob_that_is_not_there_is_a_key_error(blobs: FileBlobStore) -> None:
    with pytest.raises(KeyError):
        blobs.map(DIGEST)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        DIGEST[:-1],
        DIGEST + "0",
        DIGEST.upper(),
        DIGEST + "\n",
        f"../{DIGEST}",
        DIGEST[:61] + "/..",
    ],
)
def test_a_name_that_is_no_digest_leads_nowhere(
    blobs: FileBlobStore, name: str
) -> None:
    for look in (blobs.map, blobs.path):
        with pytest.raises(ValueError, match="not a digest"):
            look(name)


# Drafts


def drafted(blobs: FileBlobStore, *pieces: bytes) -> FileDraft:
    draft = blobs.draft()
    for piece in pieces:
        draft.write(piece)
    return draft


def test_a_draft_becomes_a_blob_when_it_is_kept_and_not_before(
    blobs: FileBlobStore, root: Path
) -> None:
    draft = drafted(blobs, b"one ", b"", b"two")
    assert draft.size == 7
    digest = draft.seal()
    assert digest == sha256(b"one two").hexdigest()
    assert bytes(draft.map()) == b"one two"
    with pytest.raises(KeyError):
        blobs.map(digest)
    draft.keep()
    assert bytes(blobs.map(digest)) == b"one two"
    draft.discard()
    assert files(root) == [digest]


@pytest.mark.parametrize("before", [lambda draft: draft, FileDraft.seal])
def test_a_discarded_draft_leaves_nothing(
    blobs: FileBlobStore, root: Path, before: Callable[[FileDraft], object]
) -> None:
    draft = drafted(blobs, b"x")
    assert len(files(root)) == 1
    before(draft)
    draft.discard()
    draft.discard()
    assert files(root) == []


def test_a_sealed_draft_takes_no_more_bytes(blobs: FileBlobStore) -> None:
    draft = drafted(blobs, b"x")
    draft.seal()
    with pytest.raises(ValueError, match="closed"):
        draft.write(b"y")
    draft.discard()


def test_two_drafts_of_equal_bytes_do_not_meet(
    blobs: FileBlobStore, root: Path
) -> None:
    first, second = drafted(blobs, b"x"), drafted(blobs, b"x")
    for draft in (first, second):
        draft.seal()
    first.keep()
    second.discard()
    assert bytes(blobs.map(DIGEST)) == b"x"
    assert files(root) == [DIGEST]


def test_sweeping_removes_old_drafts_and_no_blob(
    blobs: FileBlobStore, root: Path
) -> None:
    blobs.put(b"x")
    draft = drafted(blobs, b"half")
    began = draft.path.stat().st_mtime
    blobs.sweep(began, ())
    assert len(files(root)) == 2
    blobs.sweep(began + 1, ())
    assert files(root) == [DIGEST]
    draft.discard()


def test_blobs_are_found_by_their_age_and_removed(
    blobs: FileBlobStore, root: Path
) -> None:
    blobs.put(b"x")
    written = blobs.path(DIGEST).stat().st_mtime
    assert list(blobs.older(written)) == []
    assert list(blobs.older(written + 1)) == [DIGEST]
    held = blobs.map(DIGEST)
    blobs.remove(DIGEST)
    blobs.remove(DIGEST)
    assert not blobs.has(DIGEST)
    assert files(root) == []
    assert bytes(held) == b"x"


# A full disk


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let drafts write to a device on which nothing fits."""
    begin: Callable[[FileBlobStore], FileDraft] = FileBlobStore.draft

    def draft(self: FileBlobStore) -> FileDraft:
        begun = begin(self)
        begun._file.close()
        begun._file = Path("/dev/full").open("wb")  # noqa: SIM115  the draft closes it
        return begun

    monkeypatch.setattr(FileBlobStore, "draft", draft)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("size", [1, 1 << 20], ids=["when sealed", "when written"])
def test_a_full_disk_is_said_and_leaves_nothing(
    blobs: FileBlobStore, root: Path, size: int
) -> None:
    with pytest.raises(StorageFull):
        blobs.put(bytes(size))
    assert files(root) == []


def test_an_exhausted_quota_alone_counts_as_a_full_disk(
    blobs: FileBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Mock(side_effect=OSError(errno.EDQUOT, "quota"))
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(StorageFull):
        blobs.put(b"x")
    failing.side_effect = OSError(errno.EIO, "broken disk")
    with pytest.raises(OSError, match="broken disk"):
        blobs.put(b"x")


@pytest.mark.usefixtures("in_blobs")
def test_an_upload_to_a_full_disk_is_refused_and_leaves_no_trace(
    api: Api, request: pytest.FixtureRequest
) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    layout = Layout.lattice(2)
    session = api.open(Dummy(), simulation.split(X, layout, seed=1)).join()
    content = session.reply(layout.names[0])
    before = api.stored()
    request.getfixturevalue("full_disk")
    refusal = session.put(layout.names[0], content)
    assert refusal.status_code == 507
    assert refusal.json()["type"] == Problem.STORAGE_FULL.urn
    assert api.stored() == before


# Reading without keeping


def resident(path: Path) -> int:
    """Bytes of a mapped file that are in this process's memory."""
    maps = Path("/proc/self/smaps").read_text().partition(str(path))[2]
    return int(re.search(r"Rss:\s+(\d+) kB", maps)[1]) << 10  # type: ignore[index]  # a mapped file has this line


def test_a_large_blob_is_read_whole_and_its_pages_are_let_go(
    blobs: FileBlobStore,
) -> None:
    content = bytes(range(256)) * (32 << 12)
    path = blobs.path(blobs.put(content))
    mapping = map_file(path)
    kept = np.frombuffer(mapping, np.uint8).sum()
    assert resident(path) > len(content) // 2
    with trim_pages(mapping):
        assert np.frombuffer(mapping, np.uint8).sum() == kept
    assert resident(path) == 0
    assert bytes(mapping) == content
