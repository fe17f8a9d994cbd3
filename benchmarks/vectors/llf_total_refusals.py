"""Totals of a session of `llf` over rows at which a party must stop."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.vectors.forgery import (
    Change,
    FalsifiedSum,
    Forger,
    add,
    cut,
    hold,
    tell_all,
)
from benchmarks.vectors.form import Refusal
from clustering_protocols.engine.packets import Packet
from clustering_protocols.shared_stages.secrets import ColumnSecret

_FIRST_ROUND = 8
"""The round before the first update."""
_PLACES = {"sum_0": 0, "sum_1": 3, "count_0": 9, "count_1": 10}
"""Places of words in a total: sums of the first column, and counts, of two clusters."""


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return the refusals by the first of three members, from given centroids."""
    return [*_refuse_updates(forger), *_refuse_liars(forger), *_refuse_end(forger)]


def _refuse_updates(forger: Forger) -> list[Refusal]:
    first = forger.task("update", 1).arrays["totals"]
    none = {"updates": (0, 3), "cohorts": (0, 3), "totals": (0, first.shape[1])}
    changes: dict[str, Change] = {
        "a word of a total is one more": lambda p: add(p, "totals", (0, 0), 1),
        "the tag of a total is one more": lambda p: add(p, "totals", (0, -1), 1),
        "a total of another round": lambda p: add(p, "updates", (0, 1), -1),
        "a total of another number": lambda p: add(p, "updates", (0, 0), 1),
        "a total without one party": _leave_out,
        "no total": lambda p: hold(
            p, **{name: p.arrays[name][:0].reshape(to) for name, to in none.items()}
        ),
    }
    return forger.refuse(
        {
            ("update", "protocol-failed", 1): changes,
            ("update", "protocol-failed", 2): {
                "the total of the update before": lambda p: hold(p, totals=first)
            },
            ("update", "invalid-array", 1): {
                "a total without its tag": lambda p: cut(p, "totals"),
                "an array that nobody knows": lambda p: tell_all(hold(p, x=np.eye(1))),
            },
        }
    )


def _refuse_liars(forger: Forger) -> list[Refusal]:
    """Return the refusals of totals of other rows, though their tags are right."""
    first, second = (
        FalsifiedSum(ColumnSecret, f"update/{number}", _FIRST_ROUND + number)
        for number in (1, 2)
    )

    def falsify(of: FalsifiedSum, **by: int) -> Change:
        places = {_PLACES[name]: value for name, value in by.items()}
        return lambda packet: forger.falsify(packet, "totals", of, places)

    far = 1 << 44
    return forger.refuse(
        {
            ("update", "protocol-failed", 1): {
                "one row too many": falsify(first, count_0=1),
                "fewer rows than none": falsify(first, count_0=-60, count_1=60),
                "fewer rows than the party's own": falsify(
                    first, count_0=-17, count_1=17
                ),
            },
            ("update", "protocol-failed", 2): {
                "sums of other rows": falsify(second, sum_0=1000),
                "rows that went farther away": falsify(second, sum_0=far, sum_1=-far),
            },
        }
    )


def _refuse_end(forger: Forger) -> list[Refusal]:
    found: list[Refusal] = []
    for kind, name, stem in (
        ("gather", "closing", "closed"),
        ("tell", "gathered", "gathered"),
    ):
        raised = {
            f"a word of {name} is one more": (name, 0, 1),
            f"the tag of {name} is one more": (name, -1, 1),
            f"{name} of two parties alone": (f"{stem}_by", 0, 255),
            f"a round of {name} that was another": (f"{stem}_in", 0, 1),
        }
        found += forger.refuse(
            {
                (kind, "protocol-failed"): {
                    sentence: partial(_raise, *change)
                    for sentence, change in raised.items()
                },
                (kind, "invalid-array"): {
                    f"{name} without its tag": partial(_shorten, name)
                },
            }
        )
    return found


def _raise(name: str, place: int, by: int, packet: Packet) -> Packet:
    return add(packet, name, place, by)


def _shorten(name: str, packet: Packet) -> Packet:
    return cut(packet, name)


def _leave_out(packet: Packet) -> Packet:
    cohorts = packet.arrays["cohorts"].copy()
    cohorts[0, 0] = 0
    return hold(packet, cohorts=cohorts)
