"""What a session of a size takes, in sentences: only what is worth a second thought.

Bytes and memory are the protocol's own (:mod:`clustering_protocols.contract.sizing`);
time is its work at the speed that `python -m benchmarks.sizing` measured, of one
processor core.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from clustering_protocols import catalogue
from clustering_protocols.contract import Params
from clustering_protocols.contract.sizing import Extent, Needs

MUCH_KEPT: Final = 4e9
MUCH_SENT: Final = 1e9
MUCH_MEMORY: Final = 4e9
LONG: Final = 10.0
"""Minutes."""

_STEP, _FEW = 1000, 10
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")


def end(params: Params, extent: Extent) -> str:
    """Return that a session of so many rows would end, and what helps; else nothing."""
    sizes = catalogue.protocol_of(params).sizes()
    most = sizes.most_rows(params, extent.features)
    if most is None or extent.rows <= most:
        return ""
    return (
        f"With these parameters {catalogue.name_of(params)} ends at {most:,} rows. "
        f"{sizes.beyond(params)}"
    )


def warnings(params: Params, extent: Extent) -> list[str]:
    """Return what people should know before such a session opens; nothing if small."""
    return list(_warnings(params, extent))


def _warnings(params: Params, extent: Extent) -> Iterator[str]:
    needs = catalogue.protocol_of(params).sizes().needs(params, extent)
    if needs is None:
        return
    if needs.kept >= MUCH_KEPT:
        yield (
            f"The session keeps up to {size(needs.kept)} of files at the analyst until "
            "it is over."
        )
    if needs.sent >= MUCH_SENT:
        yield f"A party sends up to {size(needs.sent)}."
    if needs.analyst_memory >= MUCH_MEMORY:
        yield f"The analyst takes up to {size(needs.analyst_memory)} of memory."
    if needs.party_memory >= MUCH_MEMORY:
        yield f"A party takes up to {size(needs.party_memory)} of memory."
    long = minutes(params, needs)
    if long is not None and long >= LONG:
        yield (
            f"It computes for about {duration(long)} on one processor core; the network "
            "and people come on top."
        )


def minutes(params: Params, needs: Needs) -> float | None:
    """Return how long analyst and parties compute; None where no speed was measured."""
    speeds = load_measurements()["speeds"].get(catalogue.name_of(params), {})
    speed = speeds.get(needs.measured_as)
    if speed is None:
        return None
    return minutes_at(needs, speed)


def minutes_at(needs: Needs, speed: Mapping[str, float]) -> float:
    """Return how long the same takes at a speed, as ``sizing.json`` says it of a way."""
    seconds = (
        needs.analyst_work / speed["analyst"]
        + needs.party_work / speed["party"]
        + needs.rounds * speed["seconds_of_a_round"]
    )
    return seconds / 60


def size(n_bytes: float) -> str:
    """Return a number of bytes for people, in two digits or more."""
    power = 0
    while n_bytes >= _STEP and power < len(_UNITS) - 1:
        n_bytes, power = n_bytes / _STEP, power + 1
    digits = 1 if power and n_bytes < _FEW else 0
    return f"{n_bytes:,.{digits}f} {_UNITS[power]}"


def duration(length: float) -> str:
    """Return minutes for people."""
    if length < 1 / 60:
        return "under 1 s"
    if length < 1:
        return f"{60 * length:.0f} s"
    if length < 1.5:
        return "1 minute"
    if length < 120:
        return f"{length:.0f} minutes"
    if length < 48 * 60:
        return f"{length / 60:.0f} hours"
    return f"{length / 60 / 24:,.0f} days"


@cache
def load_measurements() -> Mapping[str, Any]:
    """Return what ``python -m benchmarks.sizing`` measured."""
    text = resources.files("party_sdk.advice").joinpath("sizing.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found
