"""Ids of the same patients as three institutions write them."""

from __future__ import annotations

import numpy as np

_TYPED = 0.02


def spellings(rng: np.random.Generator, n_common: int) -> list[list[str]]:
    """Return the ids of three tables that have ``n_common`` patients in common.

    The first writes KV-01234567; the second kv-, in three of ten without a leading zero;
    the third with blanks or a hyphen. Two in a hundred of the last two have a typing
    error. Each has a fifth more patients that no other has.
    """
    n_own = n_common // 5
    numbers = rng.choice(10**6, n_common + 3 * n_own, replace=False)
    common, own = numbers[:n_common], np.split(numbers[n_common:], 3)
    first, second, third = (
        [f"{number:08d}" for number in rng.permutation([*common, *each])]
        for each in own
    )
    lost = [
        f"kv-{i[1:]}" if i.startswith("0") and rng.random() < 0.3 else f"kv-{i}"
        for i in second
    ]
    blank = [f" KV {i} " if rng.random() < 0.5 else f"KV-{i}" for i in third]
    return [
        [f"KV-{i}" for i in first],
        [_typed(rng, i) for i in lost],
        [_typed(rng, i) for i in blank],
    ]


def _typed(rng: np.random.Generator, text: str) -> str:
    """Return a text with a typing error, or not: two swapped, one other, or one lost."""
    if rng.random() >= _TYPED:
        return text
    signs, place, kind = list(text), int(rng.integers(len(text) - 1)), rng.random()
    if kind < 0.4:
        signs[place], signs[place + 1] = signs[place + 1], signs[place]
    elif kind < 0.8:
        signs[place] = str(rng.integers(10))
    else:
        del signs[place]
    return "".join(signs)
