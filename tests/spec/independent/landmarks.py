"""Section 12: omnifc, landmarks that all parties draw alike, in all bits."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .derivations import P, Stream

Floats = NDArray[np.float64]


def draw_landmarks(widths: Floats, stream: Stream) -> NDArray[np.uint64]:
    """Section 12, omnifc, landmarks: their residues."""
    d = len(widths)
    radius = max(0.45 * sqrt(_add_up(widths * widths)), 16.0 * sqrt(d))
    corners = _draw_corners(d, stream)
    points = np.rint(widths / 2 + radius * corners)
    return np.array([[int(x) % P for x in row] for row in points], np.uint64)


def _draw_corners(d: int, stream: Stream) -> Floats:
    """Section 12, omnifc, landmarks, 2 and 3: the corners, turned."""
    corners = np.empty((d + 1, d))
    corners[0] = 1 / sqrt(d)
    corners[1:] = -(sqrt(d + 1) + 1) / (d * sqrt(d))
    for i in range(d):
        corners[i + 1, i] += sqrt(1 + 1 / d)
    for size in range(1, d + 1):
        v = _draw_numbers(size, stream)
        sign = 1.0 if v[0] > 0 else -1.0
        squares = _add_up(v * v)
        v[0] += sign * sqrt(squares)
        length = _add_up(v * v)
        for row in corners:
            part = row[d - size :]
            along = 2 * _add_up(part * v) / length
            part[:] = sign * (along * v - part)
    return corners


def _draw_numbers(size: int, stream: Stream) -> Floats:
    """Section 12, omnifc, landmarks: numbers of step 3."""
    upper = [int(word) >> 32 for word in stream.words(12 * size)]
    found = []
    for place in range(size):
        total = sum(2 * h + 1 for h in upper[place::size])
        found.append(float(total - 12 * 2**32) * 2.0**-33)
    return np.array(found)


def _add_up(numbers: Floats) -> float:
    """Section 12, omnifc, landmarks: a sum, number by number."""
    total = 0.0
    for number in numbers.tolist():
        total += number
    return total
