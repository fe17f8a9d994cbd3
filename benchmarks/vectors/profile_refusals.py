"""Messages of the stage of profiles at which a party must stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.vectors.forgery import Forger, hold, say, tell_all
from clustering_protocols.engine.packets import Packet
from party_sdk.conformance.vectors import Refusal


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return them, of a member of three whose profiles everybody reads."""
    failed = "protocol-failed"
    return [
        *forger.change(
            "take-labels", "malformed", {"labels that are no result": _be_a_task}
        ),
        *forger.change(
            "add-profile",
            failed,
            {
                "more clusters than rows": lambda p: tell_all(say(p, n_clusters=73)),
                "fewer clusters than labels": lambda p: tell_all(say(p, n_clusters=1)),
                "the second sum first": lambda p: tell_all(say(p, sum=2)),
            },
        ),
        *forger.change(
            "add-profile",
            failed,
            {
                "a row more in a cluster": lambda p: tell_all(_add(p)),
                "another number of clusters": lambda p: tell_all(say(p, n_clusters=4)),
            },
            nth=1,
        ),
        *forger.change(
            "read-profiles",
            failed,
            {
                "another mean": lambda p: tell_all(_retell(p, _move_mean)),
                "no profile": lambda p: tell_all(_retell(p, list.clear)),
            },
        ),
        *forger.change(
            "read-profiles",
            "malformed",
            {"a profile without fields": lambda p: tell_all(_retell(p, _lose_fields))},
        ),
    ]


def _be_a_task(packet: Packet) -> Packet:
    """Return labels whose content is the record of a task."""
    text = bytes(packet.arrays["result"]).replace(b"closed", b"update")
    return tell_all(hold(packet, result=np.frombuffer(text, np.uint8)))


def _add(packet: Packet) -> Packet:
    total = packet.arrays["total"].copy()
    total[0] += np.uint64(1)
    return hold(packet, total=total)


def _retell(packet: Packet, change: Callable[[list[Any]], None]) -> Packet:
    """Return profiles that say something else."""
    told = json.loads(packet.arrays["text"].tobytes())
    change(told)
    text = json.dumps(told, separators=(",", ":")).encode()
    return hold(packet, text=np.frombuffer(text, np.uint8))


def _move_mean(told: list[Any]) -> None:
    """Add to the first mean that is told."""
    field = next(each for each in told[0]["fields"] if each["mean"])
    line = next(i for i, mean in enumerate(field["mean"]) if mean is not None)
    field["mean"][line] += 1.0


def _lose_fields(told: list[Any]) -> None:
    del told[0]["fields"]
