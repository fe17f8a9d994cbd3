"""Messages of a session of `omnifc` at which a party must stop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.vectors.forgery import (
    Forger,
    add,
    ask,
    carry,
    empty,
    hold,
    say,
    spoil,
    tell_all,
)
from clustering_protocols.engine.packets import Packet
from clustering_protocols.protocols.omnifc.messages import RowShares
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy.prime import P
from clustering_protocols.shared_stages.statistics.by_leader import PooledMoments
from party_sdk.conformance.vectors import Refusal

_ROWS = 11
_COLUMNS = 3


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return them, of a party in the middle of three that add up."""
    return [
        *_of_the_moments(forger),
        *_of_the_shares(forger),
        *forger.change(
            "sign",
            "task-refused",
            {
                "shares are asked for again": lambda p: ask(p, "shares", "share"),
                "distances are asked for again": lambda p: ask(
                    p, "distances", "compare"
                ),
            },
            nth=1,
        ),
        *forger.change_result(
            "task-refused",
            {"labels of fewer rows": lambda p: hold(p, labels=p.arrays["labels"][:-1])},
        ),
    ]


def list_refusals_of_ranges(forger: Forger) -> list[Refusal]:
    """Return them, of a member whose leader pools ranges."""
    none, low, high = np.empty(0), np.full(_COLUMNS, -9.0), np.full(_COLUMNS, 16.0)

    def pool(low: np.ndarray, high: np.ndarray) -> Callable[[Packet], Packet]:
        told = PooledMoments(
            n_rows=3 * _ROWS, mean=none, deviations=none, minimum=low, maximum=high
        )
        return lambda packet: forger.seal(packet, 0, told)

    return [
        *forger.change(
            "share",
            "protocol-failed",
            {
                "ranges that leave out low values": pool(low + 9.0, high),
                "ranges that leave out high values": pool(low, high - 14.0),
                "no ranges": empty,
            },
        ),
        *forger.change(
            "share",
            "invalid-array",
            {
                "ranges of fewer columns": pool(low[:2], high[:2]),
                "ranges that are too large": pool(low, high * 1e100),
            },
        ),
    ]


def _of_the_moments(forger: Forger) -> list[Refusal]:
    return [
        *forger.change(
            "add-up",
            "protocol-failed",
            {
                "a word of the last total is one more": lambda p: add(p, "total", 0, 1),
                "the tag of the last total is one more": lambda p: add(
                    p, "total", -1, 1
                ),
            },
            nth=4,
        ),
        *forger.change(
            "share",
            "task-refused",
            {"no shares are asked for": lambda p: ask(p, "distances", "compare")},
        ),
        *forger.change(
            "share",
            "malformed",
            {"a value that nobody knows": lambda p: tell_all(say(p, more=1))},
        ),
    ]


def _of_the_shares(forger: Forger) -> list[Refusal]:
    shares: WordArray = np.ones((_ROWS, _COLUMNS), np.uint64)
    beyond = RowShares.model_construct(shares=shares * np.uint64(P))

    def share(content: RowShares) -> Callable[[Packet], Packet]:
        return lambda packet: forger.seal(packet, 1, content)

    return [
        *forger.change(
            "compare",
            "protocol-failed",
            {
                "no shares": empty,
                "shares of one party are withheld": lambda p: carry(p, p.envelopes[:1]),
            },
        ),
        *forger.change(
            "compare",
            "invalid-array",
            {
                "shares of fewer rows": share(RowShares(shares=shares[:-1])),
                "shares of fewer columns": share(
                    RowShares(shares=shares[:, 1:].copy())
                ),
                "a share that is p": share(beyond),
                "an array that nobody knows": lambda p: tell_all(hold(p, x=np.eye(1))),
            },
        ),
        *forger.change("compare", "envelope-refused", {"a bit of an envelope": spoil}),
    ]
