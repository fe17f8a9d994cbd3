"""An analyst as a child process.

    python -m party_sdk.cli.own_analyst PORT

prints a coordinator's key, and serves until the parent closes the pipe at standard input,
on purpose or because it has ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from party_sdk.cli import main


def serve(port: str) -> None:
    """Serve, with settings from the environment as for ``coterie serve``."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    main(["migrate"], standalone_mode=False)
    main(["key", "create", "--label", "local session"], standalone_mode=False)
    sys.stdout.flush()
    main(["serve", "--port", port])


def _exit_with_parent() -> None:
    """Kill this process and its workers once the pipe is closed."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1])
