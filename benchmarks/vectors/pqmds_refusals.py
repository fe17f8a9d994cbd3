"""Messages of a session of `pqmds` at which a party must stop."""

from __future__ import annotations

import numpy as np

from benchmarks.vectors.forgery import (
    Forger,
    ask,
    empty,
    hold,
    say,
    spoil,
    tell,
    tell_all,
)
from clustering_protocols.shared_stages.alignment.digests import Digests
from party_sdk.conformance.vectors import Refusal

_OTHER = "ab" * 32


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return them, of a party in the middle of three."""
    other = Digests(rows=_OTHER, columns=_OTHER)
    return [
        *forger.change(
            "encode",
            "protocol-failed",
            {"the leader holds other rows": lambda p: forger.seal(p, 0, other)},
        ),
        *forger.change(
            "encode",
            "envelope-refused",
            {"the leader's digests are withheld": empty, "a bit of an envelope": spoil},
        ),
        *forger.change(
            "encode",
            "task-refused",
            {
                "others were told otherwise": lambda p: tell(p, told=[_OTHER]),
                "no codes are asked for": lambda p: ask(p, "closing", "sign"),
            },
        ),
        *forger.change(
            "encode",
            "malformed",
            {"a value that nobody knows": lambda p: tell_all(say(p, more=1))},
        ),
        *forger.change(
            "encode",
            "invalid-array",
            {"an array that nobody knows": lambda p: tell_all(hold(p, x=np.eye(1)))},
        ),
        *forger.change(
            "sign",
            "task-refused",
            {"a second upload": lambda p: ask(p, "upload", "encode")},
            nth=1,
        ),
        *forger.change_result(
            "task-refused",
            {
                "labels of fewer rows": lambda p: hold(
                    p, labels=p.arrays["labels"][:-1]
                ),
                "means of fewer codes": lambda p: hold(
                    p, centroids=p.arrays["centroids"][:, 1:].copy()
                ),
            },
        ),
    ]
