"""The process that reads one file.

    python -m party_sdk.tables.isolation.child FOLDER TALK NUMBERS CELLS ORIGINAL

FOLDER is for copies. The others are descriptors of open files: TALK holds the question
and then the answer. The process ends at once when its starter is gone: the pipe at
standard input is closed then.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NoReturn

from clustering_protocols.common.errors import CoterieError, InvalidData
from party_sdk.home.disk_room import is_full
from party_sdk.home.process_exit import place_of
from party_sdk.tables.isolation.jobs import Answer, Job, Refusal, job_of
from party_sdk.tables.parsing.limits import (
    DISK_FULL,
    LARGE_FILE,
    MOST_ADDRESSES,
    MOST_SECONDS,
    MOST_UNPACKED,
    OUT_OF_MEMORY,
    OUT_OF_ROOM,
    most_memory,
)
from party_sdk.tables.scratch import Scratch
from party_sdk.tables.spool import empty

_LIMITS: Final = {errno.ENOMEM: OUT_OF_MEMORY, errno.EFBIG: OUT_OF_ROOM}


def main(folder: str, talk: str, numbers: str, cells: str, original: str) -> NoReturn:
    """Answer one question."""
    ends = threading.Thread(target=_end_with_the_other, args=[folder], daemon=True)
    ends.start()
    with (
        os.fdopen(int(talk), "r+b") as messages,
        os.fdopen(int(numbers), "r+b") as rows,
        os.fdopen(int(cells), "r+b") as columns,
        os.fdopen(int(original), "r+b") as unmapped,
    ):
        messages.seek(0)
        job = job_of(messages.read())
        empty(messages)  # anyone who asks sees that this process has begun
        _limit(large=LARGE_FILE in job.how.allow)
        answer = _answer(job, Scratch(Path(folder), rows, columns, unmapped))
        _write(answer, messages)
    os._exit(0)  # nothing here has to be taken apart


def _answer(job: Job, scratch: Scratch) -> Answer:
    try:
        return job.run(scratch)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except CoterieError as error:
        return Refusal.of(error)
    except Exception as error:  # noqa: BLE001  its text may hold values of cells
        code = error.errno if isinstance(error, OSError) else None
        if code in _LIMITS:
            os._exit(_LIMITS[code])
        name, place = job.path.name, place_of(error)
        return Refusal.of(InvalidData(f"{name!r} was not read: {place}."))


def _write(answer: Answer, messages: IO[bytes]) -> None:
    try:
        messages.write(answer.model_dump_json().encode())
        messages.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except OSError as error:
        os._exit(DISK_FULL if is_full(error) else OUT_OF_ROOM)


def _limit(*, large: bool) -> None:
    """Bound what this process may take; nothing of it is written where it crashes.

    Maps of files count as addresses and not as memory. macOS keeps neither limit.
    """
    import resource

    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_DATA: most_memory(large=large)}
    if not large:
        limits[resource.RLIMIT_AS] = MOST_ADDRESSES
        limits[resource.RLIMIT_FSIZE] = MOST_UNPACKED
        # of all threads together: anyone who waits for this process ends it before
        limits[resource.RLIMIT_CPU] = int(4 * MOST_SECONDS)
    for which, most in limits.items():
        _, hard = resource.getrlimit(which)
        held = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(which, (held, held))
    with suppress(
        OSError
    ):  # where memory runs out all the same, this process ends first
        Path("/proc/self/oom_score_adj").write_text("1000")


def _end_with_the_other(folder: str) -> None:
    os.read(sys.stdin.fileno(), 1)  # no buffer: it would be locked when this one ends
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)  # nobody is left to whom it could say why


if __name__ == "__main__":
    main(*sys.argv[1:])
