"""Ratios to a named primitive, measured in one run: machines differ less in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any


def seconds(call: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def cpu_seconds(call: Callable[[], Any]) -> float:
    """Return the CPU time of a call, which other work affects less."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def ratio(
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    runs: int,
    clock: Callable[[Callable[[], Any]], float] = seconds,
) -> float:
    """Return the median ratio of interleaved runs."""
    return median(clock(ours) / clock(theirs) for _ in range(runs))
