"""The tasks that workers run: a kernel and some blocks.

Dask would log a task, its result or an exception, with the values in them. Therefore
tasks and results omit their data from ``repr``, and a worker never raises.
"""

from __future__ import annotations

import platform
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from typing_extensions import Buffer

from analyst_service.blobs import FileBlobStore
from analyst_service.settings import Settings
from clustering_protocols.common.errors import Unavailable

# An array of rows is a view into the memory map of a blob, so its address shows which
# bytes of the blob it covers. A worker opens the blob itself and creates the same view.

_NUMBERS: Final = "biuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayReference:
    """A description of an array as a view of some bytes of a blob.

    begin, size: the range of bytes within the blob.
    check: the SHA-256 of the range; None if workers read whole blobs.
    first: the offset of the array's first element within the range, in bytes.
    dtype, shape, strides: as in numpy.
    """

    digest: str
    begin: int
    size: int
    check: str | None
    first: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read_array(self, blobs: FileBlobStore) -> NDArray[Any]:
        """Return the array, read-only; raise Unavailable if the store lacks its blob."""
        try:
            part = memoryview(
                blobs.read_range(self.digest, self.begin, self.size, self.check)
            )
        except KeyError:
            raise Unavailable(
                "A Dask worker cannot find a blob. Its COTERIE_DATA_DIR and "
                "COTERIE_BLOB_STORE have to be those of the analyst."
            ) from None
        return np.ndarray(self.shape, self.dtype, part, self.first, self.strides)


class MappedBlobs:
    """The blobs of a step that are mapped into memory, searchable by address.

    blobs: the blobs by digest; they stay mapped as long as this object exists.
    with_checksums: whether references contain the SHA-256 of their range, which a worker
        needs if it fetches only that range.
    """

    def __init__(self, blobs: Mapping[str, Buffer], *, with_checksums: bool) -> None:
        arrays = {
            digest: np.frombuffer(memoryview(blob), np.uint8)
            for digest, blob in blobs.items()
        }
        by_address = [
            (byte_bounds(a)[0], digest, a) for digest, a in arrays.items() if a.size
        ]
        self._by_address = sorted(by_address, key=lambda entry: entry[0])
        self._starts = [start for start, _, _ in self._by_address]
        self._with_checksums = with_checksums
        self._checks: dict[tuple[str, int, int], str] = {}

    def find_reference(self, array: NDArray[Any]) -> ArrayReference | None:
        """Return a reference to an array, or None if no blob of the step contains it."""
        if array.size == 0 or array.dtype.kind not in _NUMBERS:
            return None
        low, high = byte_bounds(array)
        index = bisect_right(self._starts, low) - 1
        if index < 0:
            return None
        start, digest, blob = self._by_address[index]
        begin, end = low - start, high - start
        if end > blob.size:
            return None
        return ArrayReference(
            digest=digest,
            begin=begin,
            size=end - begin,
            check=self._hash(digest, blob, begin, end)
            if self._with_checksums
            else None,
            first=array.__array_interface__["data"][0] - low,
            dtype=array.dtype.str,
            shape=array.shape,
            strides=array.strides,
        )

    def _hash(self, digest: str, blob: NDArray[np.uint8], begin: int, end: int) -> str:
        """Return the SHA-256 of a range, cached for later passes over the same rows."""
        key = digest, begin, end
        if key not in self._checks:
            self._checks[key] = sha256(blob[begin:end].data).hexdigest()
        return self._checks[key]

    def replace_arrays(self, value: Any) -> tuple[Any, int]:
        """Replace arrays in blobs by references; also return the other arrays' bytes."""
        n_bytes = 0

        def replace_array(array: Any) -> Any:
            nonlocal n_bytes
            reference = self.find_reference(array)
            n_bytes += 0 if reference else array.nbytes
            return reference or array

        return _replace_instances(value, np.ndarray, replace_array), n_bytes


def resolve_references(value: Any, blobs: FileBlobStore) -> Any:
    """Return the value with arrays in place of all references."""
    return _replace_instances(
        value, ArrayReference, lambda reference: reference.read_array(blobs)
    )


def _replace_instances(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Return the value with all instances of ``kind`` in it replaced.

    The search covers partial functions, tuples, lists, dictionaries and dataclasses,
    because kernels and blocks consist of these. If nothing changes, the value itself is
    returned.
    """
    if isinstance(value, kind):
        return change(value)
    parts, rebuild = _decompose(value)
    changed = [_replace_instances(part, kind, change) for part in parts]
    is_same = all(a is b for a, b in zip(parts, changed, strict=True))
    return value if is_same else rebuild(changed)


def _decompose(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the parts of a value, and a function that rebuilds it from such parts."""
    if isinstance(value, partial):
        names = list(value.keywords)
        parts = [value.func, *value.args, *value.keywords.values()]
        n = 1 + len(value.args)
        return parts, lambda p: partial(*p[:n], **dict(zip(names, p[n:], strict=True)))
    if isinstance(value, tuple):
        return list(value), getattr(value, "_make", type(value))  # of named tuples
    if isinstance(value, list):
        return value, list
    if isinstance(value, dict):
        return list(value.values()), lambda p: dict(zip(value, p, strict=True))
    if is_dataclass(value) and not isinstance(value, type):
        return _decompose_dataclass(value)
    return [], list


def _decompose_dataclass(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    names = [field.name for field in fields(value)]

    def rebuild_dataclass(parts: list[Any]) -> Any:
        other = copy(value)  # bypasses __init__, which would reject references
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(other, name, part)
        return other

    return [getattr(value, name) for name in names], rebuild_dataclass


_PACKAGES: Final = (
    "coterie", "dask", "distributed", "numpy", "scikit-learn", "scipy",
)  # fmt: skip

Versions = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockTask:
    """A kernel and some blocks, with references in place of their rows."""

    versions: Versions
    kernel: Callable[[Any], Any] = field(repr=False)
    blocks: Sequence[Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockResults:
    """The kernel's result for each block, and the total CPU time in seconds."""

    results: Sequence[Any] = field(repr=False)
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockFailure:
    """The exception that the kernel raised, or the reason why it did not run."""

    error: Exception = field(repr=False)


@cache
def installed_versions(packages: tuple[str, ...] = ()) -> Versions:
    """Return the versions of all packages that may influence the bits of a result.

    packages: additional distributions that provide protocols in use.
    """
    installed = {"Python": platform.python_version()}
    for name in (*_PACKAGES, *packages):
        try:
            installed.setdefault(name, version(name))
        except PackageNotFoundError:
            installed.setdefault(name, "none")
    return installed


def run_task(task: BlockTask) -> BlockResults | BlockFailure:
    """Run a task on rows from the worker's own blob store. Never raises."""
    try:
        _require_same_versions(task.versions, installed_versions(tuple(task.versions)))
        blobs = _open_worker_blob_store()
        # Not as a context manager, which would reset the limit for other threads.
        threadpool_limits(1)
        begin = time.thread_time()
        kernel = resolve_references(task.kernel, blobs)
        results = [kernel(resolve_references(block, blobs)) for block in task.blocks]
        return BlockResults(results=results, seconds=time.thread_time() - begin)
    except Exception as error:  # noqa: BLE001  returned, so Dask does not log it
        return BlockFailure(error=error)


def _require_same_versions(expected: Versions, installed: Versions) -> None:
    differences = [
        f"{name} {installed.get(name, 'none')} (here {needed})"
        for name, needed in expected.items()
        if installed.get(name, "none") != needed
    ]
    if differences:
        raise Unavailable(
            f"A Dask worker has other versions: {', '.join(differences)}. Start the "
            "workers from the installation of this analyst."
        )


@cache
def _open_worker_blob_store() -> FileBlobStore:
    """Open the blob store of this worker's environment; tasks cannot choose another one."""
    return Settings().blob_location.open()
