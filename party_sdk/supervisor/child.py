"""The process of one order.

    python -m party_sdk.supervisor.child HOME SESSION SLOT

It ends at once when anyone who started it is gone: the pipe at standard input is closed
then, and the next supervisor starts it again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import NoReturn

from clustering_protocols.common.errors import CoterieError
from party_sdk.home.defects import place_of
from party_sdk.home.own_packages import use_home
from party_sdk.home.process_exit import run_to_the_end
from party_sdk.supervisor.order_runner import End, OrderRunner


def main(home: str, session: str, slot: str) -> int:
    """Run an order; return the exit code."""
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    signal.signal(signal.SIGTERM, _stop)
    order = None
    use_home(Path(home))
    try:
        order = OrderRunner(Path(home), session, slot)
        return order.run()
    except KeyboardInterrupt:
        return End.STOPPED if order is None else order.note_stop()
    except CoterieError as error:  # the status could not be written
        print(f"{session} {slot}: {error}", file=sys.stderr)  # noqa: T201  its log
        return End.TRY_AGAIN
    except Exception as error:  # noqa: BLE001  its text may hold values of cells
        place = place_of(error)
        print(f"{session} {slot}: {place}", file=sys.stderr)  # noqa: T201  its log
        return End.TRY_AGAIN if order is None else order.note_failure(place)


def _end_with_the_other() -> None:
    os.read(sys.stdin.fileno(), 1)  # no buffer: it would be locked when this one ends
    os._exit(1)  # nobody is left to whom it could say why


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    signal.signal(number, signal.SIG_IGN)  # once: a second would stop the stopping
    raise KeyboardInterrupt


if __name__ == "__main__":
    run_to_the_end(lambda: sys.exit(main(*sys.argv[1:])))
