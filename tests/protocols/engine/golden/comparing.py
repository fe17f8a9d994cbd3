"""Where a session differs first from what was kept of it, part by part.

Made by the same versions of the libraries, every bit counts. By others, floats may
differ by rounding; from the first round in which one does, everything that is bound to
the transcript follows from other bits, and of words, sealed bytes and signatures only
kind and size are compared, of the transcript's lines all but the digest.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from tests.protocols.engine.golden.fields import are_close, may_be_bound
from tests.protocols.engine.golden.recording import Golden

_Same = Callable[[Any, Any, float], bool]
_NOTHING: Mapping[str, Any] = {}


def first_differences(kept: Golden, now: Golden, *, exactly: bool) -> Iterator[str]:
    """Yield the first difference of each part, as a sentence; none of equal parts."""
    end = _round_of(kept["transcript"][-1])
    rounding = math.inf if exactly else _first_rounding(kept, now, end)

    def same(one: Any, other: Any, round_: float) -> bool:
        if one == other or (not exactly and are_close(one, other)):
            return True
        return round_ >= rounding and may_be_bound(one, other)

    for place, value in now["drawn up otherwise"].items():
        if kept["drawn up otherwise"].get(place, _NOTHING) != value:
            yield f"terms: {place} is drawn up as {value!r} now"
            break
    yield from _part("roster", kept, now, same, lambda _: 0)
    yield from _part("records", kept, now, same, _round_of)
    yield from _lines(kept["transcript"], now["transcript"], rounding)
    yield from _part("results", kept, now, same, lambda _: end)


def _round_of(name: str) -> int:
    """Return the round with which the name of a record, or a line, begins."""
    return int(name.partition(".")[0])


def _first_rounding(kept: Golden, now: Golden, end: int) -> float:
    """Return the first round in which a number is the same but for its last digits."""
    rounds = [
        _round_of(name) if part == "records" else end
        for part in ("records", "results")
        for name, fields in kept[part].items()
        for field, line in fields.items()
        for other in [now[part].get(name, _NOTHING).get(field)]
        if line != other and are_close(line, other)
    ]
    return min(rounds, default=math.inf)


def _part(
    name: str, kept: Golden, now: Golden, same: _Same, round_of: Callable[[str], int]
) -> Iterator[str]:
    """Yield where the records of a part differ first: another record, or a field."""
    for one, other in zip_longest(kept[name], now[name]):
        if one != other:
            yield f"{name}: kept is {one!r}, now comes {other!r}"
            return
        fields, found = kept[name][one], now[name][one]
        for field in {**fields, **found}:
            line, came = fields.get(field), found.get(field)
            if not same(line, came, round_of(one)):
                close = " (the same up to rounding)" if are_close(line, came) else ""
                yield f"{name}: {one}: {field!r} was {line}, is {came}{close}"
                return


def _lines(kept: list[str], now: list[str], rounding: float) -> Iterator[str]:
    for number, (one, other) in enumerate(zip_longest(kept, now, fillvalue=""), 1):
        bound = bool(one) and _round_of(one) >= rounding
        whole = [each.rpartition(" ")[0] if bound else each for each in (one, other)]
        if whole[0] != whole[1]:
            yield f"transcript: line {number} was {one!r}, is {other!r}"
            return
