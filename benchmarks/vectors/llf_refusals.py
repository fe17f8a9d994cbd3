"""Messages of sessions of `llf` at which a party must stop."""

from __future__ import annotations

import numpy as np

from benchmarks.vectors.forgery import Forger, add, hold, rename, say, tell, tell_all
from benchmarks.vectors.form import Refusal
from clustering_protocols.engine.packets import Packet
from clustering_protocols.shared_stages.starts.messages import LaneStarts

_FAILED = "protocol-failed"
_FIRST = slice(1)
_POOLED = 5
"""The number of tasks `add-up` before those of a race: they pool moments."""


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of three members, in a session of two starts."""
    return [*_refuse_starts(forger), *_refuse_race(forger), *_refuse_updates(forger)]


def list_refusals_of_columns(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of three members that hold columns."""
    return forger.refuse(
        {
            ("start-from", _FAILED): {
                "a start from no row": lambda p: tell_all(_label(p, 0, slice(None))),
                "starts of a fourth cluster": lambda p: tell_all(_label(p, 3)),
                "starts of fewer rows": lambda p: tell_all(_shorten(p)),
            },
            ("measure", _FAILED, 2): {
                "the first distances again": lambda p: tell_all(say(p, number=1)),
                "a row in a fourth cluster": lambda p: tell_all(_label(p, 3)),
            },
            ("measure", "invalid-array", 2): {
                "labels of fewer rows": lambda p: tell_all(_shorten(p))
            },
            ("scatter", _FAILED): {
                "labels that were not told": lambda p: tell_all(_label(p, 1, slice(3)))
            },
        }
    )


def _refuse_starts(forger: Forger) -> list[Refusal]:
    starts = LaneStarts(centroids=np.zeros((2, 2, 3)))
    one = LaneStarts(centroids=starts.centroids[:1])
    far = LaneStarts(centroids=starts.centroids + 1e101)
    return forger.refuse(
        {
            ("confirm", "invalid-array"): {
                "one start of two": lambda p: forger.seal(p, 0, one),
                "starts that are too far away": lambda p: forger.seal(p, 0, far),
            },
        }
    )


def _refuse_race(forger: Forger) -> list[Refusal]:
    nothing = np.zeros(1, np.uint64)
    return forger.refuse(
        {
            ("add-up", _FAILED, _POOLED): {
                "the choice before the race": lambda p: tell_all(say(p, phase=2))
            },
            ("add-up", "invalid-array", _POOLED): {
                "a total before the race": lambda p: tell_all(hold(p, total=nothing))
            },
            ("add-up", _FAILED, _POOLED + 1): {
                "a race of other rows": lambda p: add(p, "total", 0, 1)
            },
        }
    )


def _refuse_updates(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("update", _FAILED, 1): {
                "the third update second": lambda p: tell_all(say(p, number=3)),
                "an update of other rows": lambda p: add(p, "totals", (0, 0), 1),
                "an end before the rest": _close,
            },
            ("gather", _FAILED): {
                "a closing of other rows": lambda p: add(p, "closing", 0, 1)
            },
            ("tell", _FAILED): {
                "sizes of other rows": lambda p: add(p, "gathered", 0, 1)
            },
        }
    )


def _close(packet: Packet) -> Packet:
    """Return an update, turned into the task to close."""
    said = rename(packet, "close", without=("number",))
    return tell_all(tell(said, asks="close"))


def _label(packet: Packet, label: int, rows: slice = _FIRST) -> Packet:
    """Return a packet in which some rows have a label."""
    labels = packet.arrays["labels"].copy()
    labels[rows] = label
    return hold(packet, labels=labels)


def _shorten(packet: Packet) -> Packet:
    return hold(packet, labels=packet.arrays["labels"][:-1])
