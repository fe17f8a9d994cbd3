"""Speed of `omnifc`'s kernels, as ratios of processor time to primitives of one run.

    python -m benchmarks.speed.omnifc_speed [--rows N]

distances  all pairwise field distances of n rows, against one float64 matrix product
           n × d by d × n into memory that is there already, one BLAS thread.
decoding   the distances of seven answers (l = t = 2; plain, and masked) into memory that
           is there already, against reading the answers once (the largest word of each).
checking   the same with seven of nine answers needed and two checked.
encoding   l + t = 6 parts to ten shares, against a copy of as many bytes as go in and
           come out.
masking    hiding one answer among seven parties, against expanding as many words of the
           six pairwise streams alone.

Each ratio is the median over interleaved runs, after one of each that is not counted.
Ends with 1 if one is above its goal.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.omnifc import OmniFC, analyst, maths, party
from clustering_protocols.protocols.omnifc.distances import field_distances
from clustering_protocols.protocols.omnifc.maths import n_pairs
from clustering_protocols.secrecy.prime import P
from clustering_protocols.terms.terms import Layout

RUNS = 5


def seconds(call: Callable[[], Any]) -> float:
    """Return the processor time of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any]) -> float:
    """Return the median ratio of interleaved runs."""
    ours(), theirs()
    return median(seconds(ours) / seconds(theirs) for _ in range(RUNS))


def residues(*shape: int) -> Any:
    """Return random residues."""
    return np.random.default_rng(0).integers(0, P, size=shape, dtype=np.uint64)


def reached(what: str, found: float, unit: str, goal: float | None) -> bool:
    """Print a ratio beside its goal; return whether it is reached."""
    beside = "" if goal is None else f" (goal {goal:g})"
    print(f"{what}: {found:.2f} × {unit}{beside}", flush=True)
    return goal is None or found <= goal


def distances(n: int, d: int, goal: float | None) -> bool:
    """Measure one shape."""
    Z, out = residues(n, d), np.zeros((n, n))
    A = np.random.default_rng(1).normal(size=(n, d))
    B = np.ascontiguousarray(A.T)
    found = ratio(lambda: field_distances(Z), lambda: np.dot(A, B, out=out))
    return reached(f"distances, {n} × {d}", found, "one matrix product", goal)


def decode(n: int, *, answers: int, hidden: bool, goal: float | None) -> bool:
    """Measure so many answers."""
    params = OmniFC(n_clusters=2, segments=2, noise=2, hide_segments=hidden)
    slots = Layout.lattice(answers).names
    # zeros are consistent answers; written once each, so that they are in memory
    given = {slot: np.zeros(n_pairs(n), dtype=np.uint64) for slot in slots}
    for answer in given.values():
        answer.fill(0)
    decoder = analyst.DistanceDecoder.of(params, slots, given, 20)
    found = ratio(
        lambda: decoder.read(slice(n_pairs(n))),
        lambda: [answer.max() for answer in given.values()],
    )
    kind = "masked" if hidden else "plain"
    return reached(f"decoding, {answers} {kind} answers", found, "reading them", goal)


def encode(size: int, goal: float) -> bool:
    """Measure six parts and ten shares."""
    parts = list(residues(6, size))
    matrix = maths.build_encoding_matrix(3, 3, 10)
    source = np.ones(16 * size, dtype=np.uint64)
    target = np.ones_like(source)
    found = ratio(
        lambda: maths.encode(matrix, parts), lambda: np.copyto(target, source)
    )
    return reached(f"encoding, 6 parts to 10 shares of {size}", found, "a copy", goal)


def hide(n: int) -> bool:
    """Measure one answer among seven parties."""
    values = residues(n_pairs(n))

    def streams() -> list[KeyedStream]:
        return [KeyedStream(bytes([peer] * 32)) for peer in range(6)]

    def ours() -> None:
        party.hide(values, 12345, [(1, stream) for stream in streams()])

    block = np.empty(1 << 16, dtype=np.uint64)

    def theirs() -> None:
        for stream in streams():
            for _ in range(len(values) // len(block)):
                stream.fill(block)

    return reached("masking, 7 parties", ratio(ours, theirs), "the streams", None)


def main() -> int:
    """Print all ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    n = parser.parse_args().rows
    with threadpool_limits(1):
        found = [
            distances(n, 4, None),
            distances(n, 16, 8.0),
            distances(n, 392, 4.5),
            decode(n, answers=7, hidden=False, goal=3.0),
            decode(n, answers=7, hidden=True, goal=3.0),
            decode(n, answers=9, hidden=False, goal=None),
            encode(400_000, 25.0),
            hide(n // 2),
        ]
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main())
