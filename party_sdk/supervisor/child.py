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
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from clustering_protocols.errors import CoterieError
from party_sdk.ending import run_to_the_end
from party_sdk.supervisor.background import Background, End
from party_sdk.supervisor.clock import now
from party_sdk.supervisor.files import OrderFiles
from party_sdk.supervisor.models import OrderState, Trouble


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
        _tell(OrderFiles(Path(home), session, slot), error)
        return End.OVER


def _tell(files: OrderFiles, error: Exception) -> None:
    """Say where an unexpected error came from, and nothing of its text."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
    print(f"{files.session} {files.slot}: {place}", file=sys.stderr)  # noqa: T201
    trouble = Trouble(
        headline="Something unexpected happened here",
        detail=f"{place}.",
        remedy="Run it at a terminal (coterie party resume) and report what it says.",
    )
    with suppress(CoterieError, OSError):
        files.tell(state=OrderState.FAILED, trouble=trouble, ended_at=now())


def _end_with_the_other() -> None:
    os.read(sys.stdin.fileno(), 1)  # no buffer: it would be locked when this one ends
    os._exit(1)  # nobody is left to whom it could say why


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    signal.signal(number, signal.SIG_IGN)  # once: a second would stop the stopping
    raise KeyboardInterrupt


if __name__ == "__main__":
    run_to_the_end(lambda: sys.exit(main(*sys.argv[1:])))
