"""An analyst that runs as a child process.

    python -m party_sdk.cli.own_analyst PORT

It prints a coordinator's key, and serves until the pipe at its standard input is
closed, which also happens when the parent process ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from party_sdk.cli import main


def serve(port: str) -> None:
    """Run the analyst, configured by the environment as for ``coterie serve``."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    main(["migrate"], standalone_mode=False)
    main(["key", "create", "--label", "local session"], standalone_mode=False)
    sys.stdout.flush()
    main(["serve", "--port", port])


def _exit_with_parent() -> None:
    """Wait until the pipe is closed, and kill this process."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1])
