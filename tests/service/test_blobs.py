"""The contract of the blob store, on files."""

import errno
import os
import re
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from analyst_service.blobs import FileBlobStore, map_file, trim_pages
from clustering_protocols.common.errors import StorageFull, Unavailable

DIGEST = sha256(b"x").hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobs(root: Path) -> FileBlobStore:
    return FileBlobStore(root)


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("content", [b"", b"x", bytes(3 << 20)], ids=len)
def test_a_blob_is_found_by_its_digest_alone(
    blobs: FileBlobStore, root: Path, content: bytes
) -> None:
    digest = sha256(content).hexdigest()
    with pytest.raises(KeyError):
        blobs.map(digest)
    assert blobs.put(content) == blobs.put(content) == digest
    assert bytes(blobs.map(digest)) == content
    with pytest.raises(Unavailable, match="shorter"):
        blobs.read_range(digest, 0, len(content) + 1, None)
    assert files(root) == [digest], "equal bytes are kept once"
    for name in (
        *("", "..", "/etc/passwd", f"../{digest}", digest[:61] + "/..", digest + "\n"),
        *(digest[:-1], digest + "0", digest.upper()),
    ):
        for look in (blobs.map, blobs.path):
            with pytest.raises(ValueError, match="not a digest"):
                look(name)


def test_a_blob_is_named_only_after_its_folder_is_synced(
    blobs: FileBlobStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes an existing folder, because its creator may not have synced it yet."""
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


def test_a_draft_becomes_a_blob_when_it_is_kept_and_leaves_nothing_else(
    blobs: FileBlobStore, root: Path
) -> None:
    drafts = [blobs.create_draft() for _ in range(3)]
    for draft in drafts:
        for piece in (b"one ", b"", b"two"):
            draft.write(piece)
    kept, same, half = drafts
    assert kept.size == 7
    digest = kept.seal()
    assert same.seal() == digest == sha256(b"one two").hexdigest()
    assert bytes(kept.map()) == b"one two"
    with pytest.raises(KeyError):
        blobs.map(digest)
    kept.store_as_blob()
    blobs.sweep(60, ())
    assert len(files(root)) == 3, "what is young stays"
    for draft in (kept, same, same):
        draft.discard()
    blobs.sweep(-60, ())
    assert files(root) == [digest], "a crash left the third"
    assert bytes(blobs.map(digest)) == b"one two"
    half.discard()


def test_blobs_are_found_by_their_age_and_removed(
    blobs: FileBlobStore, root: Path
) -> None:
    blobs.put(b"x")
    assert list(blobs.find_older_than(60)) == []
    assert list(blobs.find_older_than(-60)) == [DIGEST]
    held = blobs.map(DIGEST)
    blobs.remove(DIGEST)
    blobs.remove(DIGEST)
    assert not blobs.has(DIGEST)
    assert files(root) == []
    assert bytes(held) == b"x"


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


def resident(path: Path) -> int:
    """Return how many bytes of a mapped file are in this process's memory."""
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
