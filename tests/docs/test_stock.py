"""The stock of imports, from which tests start programs, outlives anyone who asks it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from support.warm import ADDRESS, LENGTH, Warm, stock


@pytest.mark.parametrize(
    "begun",
    [b"", b"\0", LENGTH.pack(100), LENGTH.pack(100) + b'{"words": ["x"'],
    ids=["nothing", "half a length", "a length", "half a request"],
)
def test_whoever_is_killed_while_asking_takes_nobody_along(
    tmp_path: Path, begun: bytes
) -> None:
    stock()
    with socket.socket(socket.AF_UNIX) as line, Path(os.devnull).open("rb") as nothing:
        line.connect(os.environ[ADDRESS])
        if begun:
            socket.send_fds(line, [begun[: LENGTH.size]], [nothing.fileno()])
        if rest := begun[LENGTH.size :]:
            line.sendall(rest)
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit(7)\n")
    assert Warm([str(program)], [0, 1, 2], env=os.environ).wait(30) == 7
