"""The benchmark of speed prints its table, in sizes whose figures mean nothing."""

import subprocess
import sys

import pytest

from benchmarks.speed.__main__ import PARTS
from benchmarks.speed.figures import Figure


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(("kernels", "audit", "answers"), id="short"),
        pytest.param((), id="all", marks=pytest.mark.thorough(only=True)),
    ],
)
def test_one_command_prints_every_speed(parts: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed", *parts, "--small"],
        capture_output=True,
        text=True,
        check=False,
    )
    heading, rule, *rows = ended.stdout.splitlines()
    assert (heading, rule) == ("| | figure | at most | |", "|---|---|---|---|"), (
        ended.stderr
    )
    assert len(rows) >= 2 * len(parts or PARTS)
    missed = any(row.endswith("| missed |") for row in rows)
    assert ended.returncode == missed, ended.stderr


def test_a_figure_misses_a_goal_that_it_is_above() -> None:
    assert Figure("one", 1.0, 1.0).is_met
    assert not Figure("one", 1.01, 1.0).is_met
    assert Figure("one", 9.0).is_met
    assert str(Figure("one", 1.0115, 1.0)) == "| one | 1.01 | 1 | missed |"
