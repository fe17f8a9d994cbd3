"""Reading through a large mapping without keeping its pages."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from typing_extensions import Buffer

_SMALL_BYTES: Final = 16 << 20
_SECONDS: Final = 0.001


@contextmanager
def trim_pages(mapping: Buffer) -> Iterator[None]:
    """Let go of a mapping's pages every millisecond while it is read.

    The kernel counts every page that was read to this process until it needs the room;
    a limit on its memory counts them too. What is read again comes from the file.
    """
    if not isinstance(mapping, mmap.mmap) or len(mapping) < _SMALL_BYTES:
        yield
        return
    done = threading.Event()
    trimmer = threading.Thread(target=_trim, args=(mapping, done), name="trimmer")
    trimmer.start()
    try:
        yield
    finally:
        done.set()
        trimmer.join()


def _trim(mapping: mmap.mmap, done: threading.Event) -> None:
    while not done.wait(_SECONDS):
        mapping.madvise(mmap.MADV_DONTNEED)
    mapping.madvise(mmap.MADV_DONTNEED)
