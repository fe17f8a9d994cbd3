"""Programs without their start: a process that has imported everything forks itself.

Starting Python and importing is most of what a short command costs, and of what an
analyst costs that is killed and started again. A *stock* of imports is a process with
one thread that waits; for each request it forks a child, which gets the files, the
folder, the environment and the words of the request, and runs the program as
``python PROGRAM WORDS`` would. Whoever asked gets the exit code, and kills the child by
going away.

That programs start, and what they import, is not shown here: see tests/system/processes.

Run as a program, this hands its files and words to the stock: for shells.
"""

import atexit
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

ADDRESS = "TEST_STOCK"
"""The variable that names the socket of the stock, here and in all children."""

CONSTANTS = "TEST_CONSTANTS"
"""The variable with the constants that a child has instead of the product's."""

LENGTH = struct.Struct("!I")
NUMBER = struct.Struct("!i")


@cache
def stock() -> None:
    """Start a stock, unless a process that started this one has one already.

    It ends with the process that made it.
    """
    if ADDRESS in os.environ:
        return
    from tempfile import TemporaryDirectory  # not above: shells start this file often

    folder = TemporaryDirectory(prefix="stock")
    address = str(Path(folder.name) / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "support.warm_stock", str(listener.fileno())],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
        )
    os.environ[ADDRESS] = address

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)


def command(program: str) -> list[str]:
    """Return the words that run a program from the stock, for a shell or subprocess."""
    stock()
    return [sys.executable, "-I", "-S", __file__, program]


def with_constants(values: Mapping[str, float]) -> dict[str, str]:
    """Return the environment of a program whose constants have other values.

    values: by module and name, ``analyst_service.driver.POLL_SECONDS``.
    """
    return {CONSTANTS: json.dumps(dict(values))}


class Warm:
    """A program that a stock runs; to be used like a ``subprocess.Popen``.

    words: the path of a Python program, and its arguments.
    files: descriptors that the program gets as 0, 1, 2 and so on.
    """

    def __init__(
        self,
        words: Sequence[str],
        files: Sequence[int],
        *,
        env: Mapping[str, str],
        cwd: str | Path = ".",
    ) -> None:
        self.args = words
        self.returncode: int | None = None
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(os.environ[ADDRESS])
        told = {**env, ADDRESS: os.environ[ADDRESS]}
        asked = {"words": list(words), "env": told, "cwd": str(Path(cwd).resolve())}
        content = json.dumps(asked).encode()
        socket.send_fds(self._line, [LENGTH.pack(len(content))], list(files))
        self._line.sendall(content)
        self.pid: int = self._number()

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._line.settimeout(timeout)
            try:
                self.returncode = self._number()
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._line.close()
        return self.returncode

    def send_signal(self, which: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended; nobody has said so yet
                os.kill(self.pid, which)

    def _number(self) -> int:
        said = self._line.recv(NUMBER.size)
        if len(said) < NUMBER.size:
            raise RuntimeError("the stock of imports is gone")
        number: int = NUMBER.unpack(said)[0]
        return number


def main() -> None:
    """Run the program that the words name; end as it ends."""
    running = Warm(sys.argv[1:], [0, 1, 2], env=os.environ)
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, lambda number, _: os.kill(running.pid, number))
    code = running.wait()
    if code < 0:
        if -code != signal.SIGKILL:  # which has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
