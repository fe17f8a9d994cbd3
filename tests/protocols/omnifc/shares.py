"""The coding of `omnifc` by its own kernels, one step at a time, for tests to look in."""

import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.engine import packets
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.omnifc import OmniFC, analyst, limits, maths, party
from clustering_protocols.protocols.omnifc.maths import field_distances
from clustering_protocols.secrecy import field
from clustering_protocols.simulation import SimulationResult

Words = NDArray[np.uint64]


def needed_answers(segments: int, noise: int) -> int:
    return OmniFC(n_clusters=2, segments=segments, noise=noise).needed_answers


def stream(*labels: int) -> KeyedStream:
    return KeyedStream(bytes([*labels, *bytes(32 - len(labels))]))


def shares(
    rows: Words, segments: int, noise: int, parties: int, source: KeyedStream
) -> list[Words]:
    parts = maths.cut_into_segments(rows, segments)
    parts += [field.draw_residues(source, len(parts[0])) for _ in range(noise)]
    matrix = maths.build_encoding_matrix(segments, noise, parties)
    return [share.reshape(len(rows), -1) for share in maths.encode(matrix, parts)]


def answers(held: Sequence[Words]) -> list[Words]:
    return [field_distances(share) for share in held]


def hidden(plain: Sequence[Words], segments: int) -> list[Words]:
    parties = len(plain)
    weights = maths.build_decoding_weights(segments, maths.share_points(parties))
    masked = [answer.copy() for answer in plain]
    for own, answer in enumerate(masked):
        streams = [
            (1 if own < peer else -1, stream(*sorted((own, peer))))
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


def words_in(messages: Iterable[Mapping[str, Any]]) -> set[int]:
    """Return all residues in the arrays of some messages."""
    arrays = (array for message in messages for array in message.values())
    return {v for a in arrays if a.dtype == np.uint64 for v in a.ravel().tolist()}


def words_sent(run: SimulationResult) -> set[int]:
    """Return all residues that travelled outside of envelopes."""
    return words_in(packets.parse(message.payload).arrays for message in run.sent)


def peak_bytes(call: Callable[[], object]) -> int:
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def assert_step_fits_memory(
    params: OmniFC, read: Callable[[Any], tuple[Any, Any]], blocks: int = 0
) -> None:
    """Cluster 900 rows in at most the memory that the limits state, and some blocks.

    read: returns squared distances, or None, and rows, as the analyst decodes them.
    """
    X = np.random.default_rng(0).normal(size=(900, 4))

    def step(n: int) -> None:
        squared, rows = read(X[:n])
        seen = analyst.build_clustering_input(params, squared, rows)
        rng = np.random.default_rng(1)
        analyst.figures_of(rows, analyst.compute_clusters(params, seen, lambda _: rng))

    step(60)  # what is compiled or imported once does not count
    peak = peak_bytes(lambda: step(len(X)))
    stated = limits.analyst_bytes(params, len(X), 4)
    stated -= limits.analyst_bytes(params, 0, 4)
    assert limits.upload_bytes(params, len(X), 4) < peak <= stated + blocks
