"""The process of one order.

    python -m party_sdk.supervisor.child HOME SESSION SLOT

It ends at once when whoever started it is gone: the pipe at standard input is closed
then, and the next supervisor starts it again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from types import FrameType
from typing import NoReturn

from clustering_protocols.errors import CoterieError
from party_sdk.ending import run_to_the_end
from party_sdk.supervisor.background import Background, End


def main(home: str, session: str, slot: str) -> int:
    """Run an order; return the exit code."""
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    signal.signal(signal.SIGTERM, _stop)
    order = None
    try:
        order = Background(Path(home), session, slot)
        return order.run()
    except KeyboardInterrupt:
        return End.STOPPED if order is None else order.stopped()
    except CoterieError as error:  # the status could not be written
        print(f"{session} {slot}: {error}", file=sys.stderr)  # noqa: T201  its log
        return End.TRY_AGAIN
    except Exception as error:  # noqa: BLE001  its text may hold values of cells
        place = place_of(error)
        print(f"{session} {slot}: {place}", file=sys.stderr)  # noqa: T201  its log
        return End.TRY_AGAIN if order is None else order.failed(place)


def place_of(error: Exception) -> str:
    """Return where an unexpected error came from, and nothing of its text."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"


def _end_with_the_other() -> None:
    os.read(sys.stdin.fileno(), 1)  # no buffer: it would be locked when this one ends
    os._exit(1)  # nobody is left to whom it could say why


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    signal.signal(number, signal.SIG_IGN)  # once: a second would stop the stopping
    raise KeyboardInterrupt


if __name__ == "__main__":
    run_to_the_end(lambda: sys.exit(main(*sys.argv[1:])))
