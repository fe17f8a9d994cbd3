"""Messages of sessions over linked rows at which a member must stop."""

from __future__ import annotations

import numpy as np

from benchmarks.vectors.forgery import Forger, empty, hold, say, tell_all
from benchmarks.vectors.form import Refusal
from clustering_protocols.engine.packets import Packet
from clustering_protocols.shared_stages.alignment.intersection import EvaluatedIds
from clustering_protocols.shared_stages.alignment.linkage import MaskedKeys

_N_KEYS, _N_LISTED = 2, 11


def list_refusals_of_ids(forger: Forger) -> list[Refusal]:
    """Return the refusals by a member whose ids the first slot answers."""
    none = np.full((11, 32), 255, np.uint8)
    few = EvaluatedIds(elements=none[:-1])
    counts = {"north": 10, "south": 9}
    return forger.refuse(
        {
            ("unblind", "invalid-array"): {
                "answers to fewer ids": lambda p: forger.seal(p, 0, few)
            },
            ("unblind", "protocol-failed"): {
                "answers are withheld": empty,
                "answers that are no points": lambda p: forger.seal(
                    p, 0, EvaluatedIds(elements=none)
                ),
            },
            ("select", "protocol-failed"): {
                "numbers of rows differ": lambda p: tell_all(say(p, n_rows=counts))
            },
            ("select", "invalid-array"): {
                "one token is not selected from": lambda p: hold(
                    p, common=p.arrays["common"][:-1]
                )
            },
        }
    )


def list_refusals_of_keys(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of two members, whose rows two match keys link."""
    points = np.zeros((_N_KEYS, _N_LISTED, 32), np.uint8)
    early = MaskedKeys(points=points, n_masks=2)
    few = MaskedKeys(points=points[:, :-1], n_masks=1)
    one_key = MaskedKeys(points=points[:1], n_masks=1)
    return forger.refuse(
        {
            ("show-tokens", "envelope-refused"): {
                "the list of the neighbour before is withheld": empty,
                "a list that was masked twice": lambda p: forger.seal(p, 0, early),
            },
            ("show-tokens", "invalid-array"): {
                "a list of fewer rows": lambda p: forger.seal(p, 0, few),
                "a list of one key alone": lambda p: forger.seal(p, 0, one_key),
            },
            ("select-linked", "protocol-failed"): {
                "a place that the list has not": lambda p: _put(p, _N_LISTED),
                "a place that comes twice": lambda p: _put(p, p.arrays["rows"][1]),
            },
        }
    )


def _put(packet: Packet, place: int) -> Packet:
    rows = packet.arrays["rows"].copy()
    rows[0] = place
    return hold(packet, rows=rows)
