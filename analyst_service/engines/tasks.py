"""What a worker does: some blocks, one after the other.

Nothing that it is given or returns shows a number when it is printed, and it lets no
exception out: Dask would write down both, with what they hold.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from threadpoolctl import threadpool_limits

from analyst_service.blobs.files import FileBlobStore
from analyst_service.engines.references import resolve_references
from analyst_service.settings import Settings
from clustering_protocols.common.errors import Unavailable

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
