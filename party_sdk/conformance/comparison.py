"""Whether what a program returned is what a vector says."""

from __future__ import annotations

import math
from typing import Any


def find_difference(
    expected: Any, found: Any, tolerance: float = 0.0, place: str = ""
) -> str:
    """Return where two JSON values differ first, and how; empty if they are the same.

    tolerance: how far floats may be off, relative to the largest of their list.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        return _compare_objects(expected, found, tolerance, place)
    if isinstance(expected, list) and isinstance(found, list):
        return _compare_lists(expected, found, tolerance, place)
    if _are_numbers([expected, found]):
        return _compare_numbers([expected], [found], tolerance, place)
    if type(expected) is type(found) and expected == found:
        return ""
    return f"{place}: {_shorten(expected)} is due, {_shorten(found)} came"


def _compare_objects(
    expected: dict[str, Any], found: dict[str, Any], tolerance: float, place: str
) -> str:
    names = sorted(expected.keys() ^ found.keys())
    if names:
        where = "missing" if names[0] in expected else "too much"
        return f"{place}.{names[0]}: {where}"
    differences = (
        find_difference(value, found[name], tolerance, f"{place}.{name}")
        for name, value in expected.items()
    )
    return next(filter(None, differences), "")


def _compare_lists(
    expected: list[Any], found: list[Any], tolerance: float, place: str
) -> str:
    if len(expected) != len(found):
        return f"{place}: {len(expected)} items are due, {len(found)} came"
    if _are_numbers(expected) and _are_numbers(found):
        return _compare_numbers(expected, found, tolerance, place)
    differences = (
        find_difference(one, other, tolerance, f"{place}[{number}]")
        for number, (one, other) in enumerate(zip(expected, found, strict=True))
    )
    return next(filter(None, differences), "")


def _are_numbers(values: list[Any]) -> bool:
    return all(type(value) in {int, float} for value in values)


def _compare_numbers(
    expected: list[float], found: list[float], tolerance: float, place: str
) -> str:
    largest = max((abs(value) for value in expected), default=0.0)
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        close = abs(one - other) <= tolerance * largest
        signs = tolerance or math.copysign(1, one) == math.copysign(1, other)
        if not (close and signs):
            return f"{place}[{number}]: {one!r} is due, {other!r} came"
    return ""


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:60]} … ({len(text)} signs)"
