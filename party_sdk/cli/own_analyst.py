"""The program of an analyst that another process keeps for itself.

    python -m party_sdk.cli.own_analyst PORT

prints a coordinator's key and serves until that process closes the pipe that it holds
at standard input: by intent, or because it has ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from party_sdk.cli import main


def serve(port: str) -> None:
    """Serve; the settings come from the environment, as those of ``coterie serve``."""
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    main(["migrate"], standalone_mode=False)
    main(["key", "create", "--label", "local session"], standalone_mode=False)
    sys.stdout.flush()
    main(["serve", "--port", port])


def _end_with_the_other() -> None:
    """End this process once nobody holds the pipe; its workers end with it.

    At once: nobody is left who would read what could still be stored.
    """
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1])
