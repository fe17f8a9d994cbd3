"""Which rows of two parties are the same person, by tokens of several keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.records.arrays import ByteArray, IntArray

Tokens = NDArray[np.bytes_]


def as_texts(slot: str, tokens: ByteArray) -> Tokens:
    """Return tokens (k, t, 32) as texts of bytes (k, t).

    Raises InvalidArray if one comes twice under one key: such values are not compared.
    """
    n_keys, n_rows, width = tokens.shape
    flat: Tokens = np.ascontiguousarray(tokens).view(f"S{width}")
    texts = flat.reshape(n_keys, n_rows)
    ordered = np.sort(texts, axis=1)
    if (ordered[:, :-1] == ordered[:, 1:]).any():
        raise InvalidArray(f"The tokens of {slot!r} are not each once.")
    return texts


def link(leader: Tokens, other: Tokens) -> IntArray:
    """Return to which row of another party each row of the leader is linked; -1 to none.

    A key links rows that no earlier key has linked, so that each row is linked once.

    leader, other: (k, n), (k, m); the keys in their order.
    """
    linked = np.full(leader.shape[1], -1, dtype=np.int64)
    free = np.ones(other.shape[1], dtype=bool)
    for own, others in zip(leader, other, strict=True):
        rows, places = np.flatnonzero(linked < 0), np.flatnonzero(free)
        _, here, there = np.intersect1d(
            own[rows], others[places], assume_unique=True, return_indices=True
        )
        linked[rows[here]] = places[there]
        free[places[there]] = False
    return linked


def common_rows(tokens: Sequence[Tokens]) -> list[IntArray]:
    """Return the places of the rows that all parties have, of each in the same order.

    A row of the first party takes part if each of the others has one that is linked to
    it. Where others agree with each other alone, nothing follows.
    """
    leader, *others = tokens
    links = [link(leader, other) for other in others]
    rows = np.arange(leader.shape[1], dtype=np.int64)
    common = np.flatnonzero(np.all([each >= 0 for each in links], axis=0))
    return [each[common] for each in (rows, *links)]
