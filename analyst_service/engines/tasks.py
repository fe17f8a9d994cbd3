"""What a worker does: some blocks, one after the other.

Nothing that it is given or returns shows a number when it is printed, and it lets no
exception out: Dask would write down both, with what they hold.
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

# A view of rows lies in the memory map of a blob. Its address tells which bytes of which
# blob it shows; a worker opens the blobs itself and shows the same bytes in the same way.

_NUMBERS: Final = "biuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Where an array lies: bytes of a blob, and how they are shown.

    begin, size: of the bytes within the blob.
    check: SHA-256 of these bytes, where a worker may fetch them by themselves.
    first: where the array's first element lies within them; dtype, shape and strides
    as numpy has them.
    """

    digest: str
    begin: int
    size: int
    check: str | None
    first: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self, blobs: FileBlobStore) -> NDArray[Any]:
        """Return the array, read-only; :class:`Unavailable` if there is no such blob."""
        try:
            part = memoryview(
                blobs.part(self.digest, self.begin, self.size, self.check)
            )
        except KeyError:
            raise Unavailable(
                "A Dask worker does not find a blob. COTERIE_DATA_DIR and "
                "COTERIE_BLOB_STORE have to lead it to those of the analyst."
            ) from None
        return np.ndarray(self.shape, self.dtype, part, self.first, self.strides)


class MappedBlobs:
    """The blobs of a step, by their place in memory.

    blobs: mapping of str to buffer; they stay mapped as long as this lives.
    is_checked: whether references say what their bytes hash to: a worker that fetches
        some bytes of a blob cannot hold them against the digest of the whole.
    """

    def __init__(self, blobs: Mapping[str, Buffer], *, is_checked: bool) -> None:
        arrays = {
            digest: np.frombuffer(memoryview(blob), np.uint8)
            for digest, blob in blobs.items()
        }
        placed = [
            (byte_bounds(a)[0], digest, a) for digest, a in arrays.items() if a.size
        ]
        self._placed = sorted(placed, key=lambda each: each[0])
        self._starts = [start for start, _, _ in self._placed]
        self._is_checked = is_checked
        self._checks: dict[tuple[str, int, int], str] = {}

    def reference(self, array: NDArray[Any]) -> Reference | None:
        """Return where an array lies; None if that is no blob of the step."""
        if array.size == 0 or array.dtype.kind not in _NUMBERS:
            return None
        low, high = byte_bounds(array)
        at = bisect_right(self._starts, low) - 1
        if at < 0:
            return None
        start, digest, blob = self._placed[at]
        begin, end = low - start, high - start
        if end > blob.size:
            return None
        return Reference(
            digest=digest,
            begin=begin,
            size=end - begin,
            check=self._check(digest, blob, begin, end) if self._is_checked else None,
            first=array.__array_interface__["data"][0] - low,
            dtype=array.dtype.str,
            shape=array.shape,
            strides=array.strides,
        )

    def _check(self, digest: str, blob: NDArray[np.uint8], begin: int, end: int) -> str:
        """Return the SHA-256 of some bytes; each pass over the rows asks for it."""
        key = digest, begin, end
        if key not in self._checks:
            self._checks[key] = sha256(blob[begin:end].data).hexdigest()
        return self._checks[key]

    def lean(self, value: Any) -> tuple[Any, int]:
        """Return a value with references in place of rows, and the bytes left in it."""
        carried = 0

        def refer(array: Any) -> Any:
            nonlocal carried
            found = self.reference(array)
            carried += 0 if found else array.nbytes
            return found or array

        return _rebuilt(value, np.ndarray, refer), carried


def resolve_references(value: Any, blobs: FileBlobStore) -> Any:
    """Return a value with the arrays that its references name."""
    return _rebuilt(value, Reference, lambda reference: reference.read(blobs))


def _rebuilt(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Return a value with all of a kind in it changed; itself where there is none.

    Looks into what kernels and blocks are made of: partial functions, tuples, lists,
    dictionaries and dataclasses.
    """
    if isinstance(value, kind):
        return change(value)
    parts, together = _taken_apart(value)
    changed = [_rebuilt(part, kind, change) for part in parts]
    is_same = all(a is b for a, b in zip(parts, changed, strict=True))
    return value if is_same else together(changed)


def _taken_apart(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return what a value holds, and how one is made of such."""
    if isinstance(value, partial):
        names = list(value.keywords)
        parts = [value.func, *value.args, *value.keywords.values()]
        n = 1 + len(value.args)
        return parts, lambda p: partial(*p[:n], **dict(zip(names, p[n:], strict=True)))
    if isinstance(value, tuple):
        make = getattr(value, "_make", type(value))  # a named tuple has another way
        return list(value), make
    if isinstance(value, list):
        return value, list
    if isinstance(value, dict):
        return list(value.values()), lambda p: dict(zip(value, p, strict=True))
    if is_dataclass(value) and not isinstance(value, type):
        return _of_dataclass(value)
    return [], list


def _of_dataclass(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    names = [each.name for each in fields(value)]

    def together(parts: list[Any]) -> Any:
        other = copy(value)  # not made anew: a check would look at references
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(other, name, part)
        return other

    return [getattr(value, name) for name in names], together


_PACKAGES: Final = (
    "coterie", "dask", "distributed", "numpy", "scikit-learn", "scipy",
)  # fmt: skip

Versions = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockTask:
    """A kernel and some blocks, with references in place of rows."""

    versions: Versions
    kernel: Callable[[Any], Any] = field(repr=False)
    blocks: Sequence[Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockResults:
    """What the kernel returned for each block, and the processor time of all, in s."""

    results: Sequence[Any] = field(repr=False)
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockFailure:
    """What the kernel raised, or what kept it from running."""

    error: Exception = field(repr=False)


@cache
def versions(packages: tuple[str, ...] = ()) -> Versions:
    """Return the versions on which the bits of a result may depend.

    ``packages``: distributions that bring protocols.
    """
    found = {"Python": platform.python_version()}
    for name in (*_PACKAGES, *packages):
        try:
            found.setdefault(name, version(name))
        except PackageNotFoundError:
            found.setdefault(name, "none")
    return found


def work(task: BlockTask) -> BlockResults | BlockFailure:
    """Run a task where its rows are read from this process's own blob store."""
    try:
        _require_same(task.versions, versions(tuple(task.versions)))
        return _run(task, _blobs())
    except Exception as error:  # noqa: BLE001  the analyst gets it, and Dask does not
        return BlockFailure(error=error)


def _require_same(analyst: Versions, here: Versions) -> None:
    other = [
        f"{name} {here.get(name, 'none')} (here {needed})"
        for name, needed in analyst.items()
        if here.get(name, "none") != needed
    ]
    if other:
        raise Unavailable(
            f"A Dask worker has other versions: {', '.join(other)}. Start its workers "
            "from the installation of this analyst."
        )


@cache
def _blobs() -> FileBlobStore:
    """Return the blobs by the environment of this worker: a task names no place."""
    return Settings().blob_place.open()


def _run(task: BlockTask, blobs: FileBlobStore) -> BlockResults:
    # for good, not for a while: threads of one worker would undo it for each other
    threadpool_limits(1)
    begun = time.thread_time()
    kernel = resolve_references(task.kernel, blobs)
    results = [kernel(resolve_references(block, blobs)) for block in task.blocks]
    return BlockResults(results=results, seconds=time.thread_time() - begun)
