"""How a command leaves: as the interpreter would, but for taking itself apart."""

from __future__ import annotations

import subprocess
import sys

import pytest

_HEAD = """
import atexit, sys, threading, time
from party_sdk.home.process_exit import run_to_the_end

class Told:
    def __del__(self):
        print("taken apart")

held = Told()
held.itself = held

def command():
    atexit.register(print, "registered")
    threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
    print("done", end=" ")
"""
_AWAITED = "done thread\nregistered\n"


@pytest.mark.parametrize(
    ("last", "status", "said", "told"),
    [
        ("", 0, _AWAITED, ""),
        ("    sys.exit(4)", 4, _AWAITED, ""),
        ("    sys.exit('why')", 1, f"{_AWAITED}taken apart\n", "why\n"),
        ("    raise ValueError('why')", 1, f"{_AWAITED}taken apart\n", "Error: why\n"),
    ],
    ids=["returns", "status", "words", "exception"],
)
def test_threads_and_what_was_registered_end_as_ever(
    last: str, status: int, said: str, told: str
) -> None:
    script = f"{_HEAD}{last}\nrun_to_the_end(command)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (status, said), done.stderr
    assert done.stderr.endswith(told)


def test_a_reader_who_has_left_is_no_success() -> None:
    script = f"{_HEAD}\nrun_to_the_end(command)"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(30) != 0
