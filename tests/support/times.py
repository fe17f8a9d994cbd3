"""What each test costs in processor time: a plugin of pytest.

Off, unless ``COTERIE_TEST_TIMES`` names a file, which must not be there yet::

    COTERIE_TEST_TIMES=/tmp/times make test

Every process of the run appends a line for each test, and one for what it spent outside
its tests (imports, collecting); the stock of imports (:mod:`support.warm`) one for each
program that it has run. A line is a JSON list: whose, and how many seconds of processor
time. A process is counted when somebody has waited for its end, and a program of the
stock for the test that started it, so that the first test of a file bears an analyst
that serves the whole file. The run closes with the dearest files and tests.

Times of a processor, unlike those of a clock, can be compared on a machine that does
other things too.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage, struct_rusage
from typing import Any

import pytest

FILE = os.environ.get("COTERIE_TEST_TIMES")
OUTSIDE = "outside of tests"
MOST_LINES = 40


def write(whose: str, seconds: float) -> None:
    """Append a line, whole: a short write at the end of a file is not interleaved."""
    if FILE:
        with Path(FILE).open("a") as file:
            file.write(json.dumps([whose, round(seconds, 4)]) + "\n")


def write_program(environment: Mapping[str, str], used: struct_rusage) -> None:
    """Append the line of a program of the stock, for the test that started it."""
    test = environment.get("PYTEST_CURRENT_TEST", OUTSIDE)
    write(test.rpartition(" (")[0] or test, used.ru_utime + used.ru_stime)


def used_by(*whom: int) -> float:
    """Return the processor time of this process, of its children that have ended."""
    each = [getrusage(which) for which in whom]
    return sum(used.ru_utime + used.ru_stime for used in each)


class _Times:
    """Measures the tests of one process."""

    def __init__(self, *whom: int) -> None:
        self.whom = whom
        self.in_tests = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = used_by(*self.whom)
        yield
        spent = used_by(*self.whom) - before
        self.in_tests += spent
        write(item.nodeid, spent)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        yield
        write(OUTSIDE, used_by(*self.whom) - self.in_tests)


class _Closing:
    """Prints what all processes together have written."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        yield
        lines = Path(FILE or "").read_text().splitlines()
        tests: Counter[str] = Counter()
        files: Counter[str] = Counter()
        for whose, seconds in map(json.loads, lines):
            tests[whose] += seconds
            files[whose.partition("::")[0]] += seconds
        terminalreporter.section(f"{sum(files.values()):.0f} s of processor time")
        for counted in (files, tests):
            for whose, seconds in counted.most_common(MOST_LINES):
                terminalreporter.line(f"{seconds:8.1f} s  {whose}")
            terminalreporter.line("")


def pytest_configure(config: pytest.Config) -> None:
    """Measure, if anybody has asked."""
    if not FILE:
        return
    works = hasattr(config, "workerinput")
    # those with whom a process shares the tests write lines of their own
    alone = works or not config.getoption("numprocesses", None)
    config.pluginmanager.register(_Times(RUSAGE_SELF, *[RUSAGE_CHILDREN] * alone))
    if not works:
        config.pluginmanager.register(_Closing())
