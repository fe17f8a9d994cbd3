"""Rows are sent as the place where they lie, and shown again from there."""

import pickle
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest
from obstore.store import MemoryStore

from analyst_service.blobs import FileBlobStore
from analyst_service.engines.tasks import (
    ArrayReference,
    MappedBlobs,
    resolve_references,
)
from analyst_service.object_store import ObjectBlobStore
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import FloatArray
from tests.system.engines.dask_kernels import Named, Piece, summed

X = np.random.default_rng(0).normal(size=(5000, 7))


@pytest.fixture
def files(tmp_path: Path) -> FileBlobStore:
    return FileBlobStore(tmp_path / "blobs")


def stored(blobs: Any, X: FloatArray = X) -> tuple[str, FloatArray, MappedBlobs]:
    digest = blobs.put(codec.encode({}, {"x": X, "y": X[:3] + 1}))
    mapped = blobs.map(digest)
    _, arrays = codec.decode(mapped)
    with_checksums = isinstance(blobs, ObjectBlobStore)
    return (
        digest,
        arrays["x"],
        MappedBlobs({digest: mapped}, with_checksums=with_checksums),
    )


VIEWS = [
    *(lambda A: A[17:3000], lambda A: A[4:5, 3:4], lambda A: A[::3, ::2]),
    *(lambda A: A[::-1, ::-1], lambda A: A[10:20].T, lambda A: A),
    *(lambda A: np.broadcast_to(A[0], (40, 7)), lambda A: A.reshape(-1)),
    *(lambda A: A[:10].view(np.uint64), lambda A: A[:10].view(np.uint8)),
    lambda A: A[3, 2:3].reshape(()),
]


def test_a_view_of_a_blob_travels_as_its_place(files: FileBlobStore) -> None:
    _, rows, mapped = stored(files)
    for view in VIEWS:
        seen = view(rows)
        lean, carried = mapped.replace_arrays(seen)
        assert isinstance(lean, ArrayReference)
        assert carried == 0
        assert len(pickle.dumps(lean)) < 500
        again = resolve_references(pickle.loads(pickle.dumps(lean)), files)
        assert (again.dtype, again.shape) == (seen.dtype, seen.shape)
        assert again.tobytes() == seen.tobytes()
        assert not again.flags.writeable


def test_rows_are_found_wherever_blocks_and_kernels_hold_them(
    files: FileBlobStore,
) -> None:
    _, rows, mapped = stored(files)
    shift = np.ones(7)
    block = Named(
        Piece(rows=(rows[:10], rows[10:30]), first=4),
        [{"a": rows[5], "b": shift}, {"c": "text", "d": None}],
    )
    kernel = partial(summed, shift, unused=rows[:2])
    lean, carried = mapped.replace_arrays((kernel, block))
    assert carried == 2 * shift.nbytes
    text = pickle.dumps(lean)
    assert len(text) < 2500
    assert rows[:10].tobytes() not in text
    kernel_again, again = resolve_references(pickle.loads(text), files)
    assert type(again) is Named
    assert type(again.piece) is Piece
    assert again.piece.first == 4
    for one, other in zip(again.piece.rows, block.piece.rows, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.other[0]["a"], rows[5])
    assert again.other[1] == {"c": "text", "d": None}
    assert kernel_again.func is summed
    np.testing.assert_array_equal(kernel_again.keywords["unused"], rows[:2])
    assert isinstance(block.piece.rows[0], np.ndarray), "the original is as it was"


def test_a_blob_that_is_missing_or_cut_is_the_machines_trouble(
    files: FileBlobStore,
) -> None:
    digest, rows, mapped = stored(files)
    reference = mapped.replace_arrays(rows[100:4000])[0]
    path = files.path(digest)
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole[: len(whole) // 2])  # another file: the map stays
    with pytest.raises(Unavailable, match="shorter"):
        reference.read_array(files)
    path.unlink()
    with pytest.raises(Unavailable, match="COTERIE_DATA_DIR"):
        reference.read_array(files)


@pytest.fixture
def objects() -> MemoryStore:
    return MemoryStore()


def over(objects: Any, folder: Path, cache_bytes: int = 1 << 30) -> ObjectBlobStore:
    return ObjectBlobStore(objects, folder, cache_bytes)


def test_a_worker_fetches_only_its_own_rows_and_only_once(
    objects: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, rows, mapped = stored(over(objects, tmp_path / "analyst"))
    reference = mapped.replace_arrays(rows[200:300])[0]
    asked = []
    get_range = obstore.get_range

    def noted(store: Any, path: str, *, start: int, length: int) -> Any:
        asked.append((path, length))
        return get_range(store, path, start=start, length=length)

    monkeypatch.setattr(obstore, "get_range", noted)
    worker = over(objects, tmp_path / "worker")
    for _ in range(3):
        np.testing.assert_array_equal(reference.read_array(worker), rows[200:300])
    assert asked == [(f"{digest[:2]}/{digest}", 100 * 7 * 8)]
    kept = [p for p in (tmp_path / "worker").rglob("*") if p.is_file()]
    assert [p.name for p in kept] == [sha256(rows[200:300].tobytes()).hexdigest()]


@pytest.mark.parametrize("wrong", ["other bytes", "cut", "gone"])
def test_bytes_that_are_not_those_of_the_analyst_are_never_used(
    objects: MemoryStore, tmp_path: Path, wrong: str
) -> None:
    digest, rows, mapped = stored(over(objects, tmp_path / "analyst"))
    reference = mapped.replace_arrays(rows[200:300])[0]
    name = f"{digest[:2]}/{digest}"
    content = bytearray(bytes(obstore.get(objects, name).bytes()))
    if wrong == "gone":
        obstore.delete(objects, name)
    else:
        end = 8000 if wrong == "cut" else len(content)
        content[reference.begin] ^= 1 if end > reference.begin else 0
        obstore.put(objects, name, bytes(content[:end]))
    worker = over(objects, tmp_path / "worker")
    with pytest.raises(Unavailable):
        reference.read_array(worker)
    assert not [p for p in (tmp_path / "worker").rglob("*") if p.is_file()]
