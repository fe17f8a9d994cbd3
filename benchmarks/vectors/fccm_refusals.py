"""Messages of a session of `fccm` at which a party must stop."""

from __future__ import annotations

import numpy as np

from benchmarks.vectors.forgery import (
    Change,
    FalsifiedSum,
    Forger,
    add,
    cut,
    hold,
    rename,
    say,
    tell,
    tell_all,
)
from clustering_protocols.engine.packets import Packet
from clustering_protocols.shared_stages.secrets import RowSecret
from party_sdk.conformance.vectors import Refusal


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return them, of a site in the middle of three with one start."""
    return [*_of_the_order(forger), *_of_the_totals(forger), *_of_the_end(forger)]


def _of_the_order(forger: Forger) -> list[Refusal]:
    return [
        *forger.change(
            "add",
            "protocol-failed",
            {
                "the first sums are not number one": lambda p: _say(p, number=2),
                "the first sums are of no start": lambda p: _say(p, lanes=[]),
                "a start that there is not": lambda p: _say(p, lanes=[0, 1]),
                "shares overflowed before there was one": lambda p: _say(
                    p, overflowed=[0]
                ),
            },
        ),
        *forger.change(
            "add",
            "protocol-failed",
            {
                "sums were left out": lambda p: _say(p, number=4),
                "sums that were made": lambda p: _say(p, number=2),
                "a start that goes on is left out": lambda p: _say(p, lanes=[]),
                "another start than the one that goes on": lambda p: _say(p, lanes=[1]),
                "a share of another start overflowed": lambda p: _say(
                    p, overflowed=[1]
                ),
                "sizes before starts have come to rest": _as_tell,
            },
            nth=2,
        ),
        *forger.change(
            "add",
            "task-refused",
            {"others were told of other starts": lambda p: say(p, lanes=[1])},
            nth=2,
        ),
    ]


def _of_the_totals(forger: Forger) -> list[Refusal]:
    before = forger.task("add", 1).arrays["total"]
    return [
        *forger.change(
            "add",
            "protocol-failed",
            {
                "a word of a total is one more": lambda p: add(p, "total", 0, 1),
                "the tag of a total is one more": lambda p: add(p, "total", -1, 1),
                "the total of the sums before": lambda p: tell_all(
                    hold(p, total=before)
                ),
                "a sum below zero, by a site that lies": _lower(forger, 0),
                "less than the site's own, by one that lies": _lower(forger, -2),
            },
            nth=2,
        ),
        *forger.change(
            "add",
            "invalid-array",
            {
                "a total without its tag": lambda p: cut(p, "total"),
                "no total": lambda p: tell_all(hold(p, total=before[:0])),
                "a total beside shares that overflowed": lambda p: _say(
                    p, overflowed=[0]
                ),
                "an array that nobody knows": lambda p: tell_all(hold(p, x=np.eye(1))),
            },
            nth=2,
        ),
        *forger.change(
            "add",
            "malformed",
            {"a number that is a text": lambda p: _say(p, number="3")},
            nth=2,
        ),
    ]


def _of_the_end(forger: Forger) -> list[Refusal]:
    return [
        *forger.change(
            "tell",
            "protocol-failed",
            {
                "a start that has come to rest": lambda p: _say(p, lanes=[0]),
                "a word of the last total is one more": lambda p: add(p, "total", 0, 1),
                "the tag of the last total is one more": lambda p: add(
                    p, "total", -1, 1
                ),
            },
        ),
    ]


def _lower(forger: Forger, place: int) -> Change:
    """Return what lowers a word of a total below zero, with the right tag."""
    of = FalsifiedSum(RowSecret, "sums-2", forger.task("add", 1).address.round)

    def change(packet: Packet) -> Packet:
        word = place % len(packet.arrays["total"])
        return forger.falsify(packet, "total", of, {word: -(1 << 57)})

    return change


def _say(packet: Packet, **values: object) -> Packet:
    """Return a packet with other values, of which everybody was told."""
    return tell_all(say(packet, **values))


def _as_tell(packet: Packet) -> Packet:
    """Return the same total with the task that ends all starts."""
    said = say(rename(packet, "tell"), lanes=[])
    return tell_all(tell(said, asks="tell"))
