"""The coding of `omnifc` by its own kernels, one step at a time, for tests to look in."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.omnifc import maths, party
from clustering_protocols.protocols.omnifc.maths import field_distances
from clustering_protocols.secrecy import field

Words = NDArray[np.uint64]


def stream(*labels: int) -> KeyedStream:
    return KeyedStream(bytes([*labels, *bytes(32 - len(labels))]))


def shares(
    rows: Words, segments: int, noise: int, parties: int, source: KeyedStream
) -> list[Words]:
    parts = maths.cut(rows, segments)
    parts += [field.draw(source, len(parts[0])) for _ in range(noise)]
    matrix = maths.build_encoding_matrix(segments, noise, parties)
    return [share.reshape(len(rows), -1) for share in maths.encode(matrix, parts)]


def answers(held: Sequence[Words]) -> list[Words]:
    return [field_distances(share) for share in held]


def hidden(plain: Sequence[Words], segments: int, session: int = 0) -> list[Words]:
    parties = len(plain)
    weights = maths.build_decoding_weights(segments, maths.share_points(parties))
    masked = [answer.copy() for answer in plain]
    for own, answer in enumerate(masked):
        streams = [
            (1 if own < peer else -1, stream(session, *sorted((own, peer))))
            for peer in range(parties)
            if peer != own
        ]
        party.hide(answer, weights[own], streams)
    return masked


def integer_distances(rows: Words) -> list[int]:
    """Return squared distances of all pairs by plain integers, not reduced."""
    whole = [[int(value) for value in row] for row in rows]
    return [
        sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
        for x, y in combinations(whole, 2)
    ]
