"""Messages of a session of `dc` at which a party must stop."""

from __future__ import annotations

import json

import numpy as np

from benchmarks.vectors.forgery import (
    RESULT,
    Forger,
    add,
    ask,
    cut,
    empty,
    hold,
    say,
    tell,
    tell_all,
)
from benchmarks.vectors.form import Refusal
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Packet
from clustering_protocols.secrecy.prime import P
from clustering_protocols.shared_stages.alignment.digests import Digests
from clustering_protocols.shared_stages.secrets import GroupSecret
from clustering_protocols.shared_stages.statistics.by_leader import PooledMoments

_OTHER = "ab" * 32


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of three members, who add up."""
    return [*_refuse_secrets(forger), *_refuse_sums(forger), *_refuse_upload(forger)]


def list_refusals_of_pairs(forger: Forger) -> list[Refusal]:
    """Return the refusals by one of two members, who pool through their leader."""
    none = np.empty(0)
    pooled = PooledMoments(
        n_rows=22, mean=none, deviations=none, minimum=np.zeros(3), maximum=np.ones(3)
    )
    narrow = pooled.model_copy(update={"minimum": np.zeros(2), "maximum": np.ones(2)})
    wide = pooled.model_copy(update={"maximum": np.full(3, 1e101)})
    return forger.refuse(
        {
            ("project", "invalid-array"): {
                "ranges of fewer columns": lambda p: forger.seal(p, 0, narrow),
                "ranges that are too large": lambda p: forger.seal(p, 0, wide),
            },
            ("project", "protocol-failed"): {"no ranges": empty},
        }
    )


def list_refusals_of_runs(forger: Forger) -> list[Refusal]:
    """Return the refusals in a session of two runs."""

    def tell_runs(packet: Packet, **values: object) -> Packet:
        """Return the closing with other values, of which everybody was told."""
        said = say(packet, **values)
        told = json.loads(packet.history[-1])["told"]
        digest = packets.digest_content(said.header.record, said.arrays)
        return tell(said, told=[digest, *told[1:]])

    def figures(packet: Packet) -> list[object]:
        return list(packet.header.record["values"]["figures"])

    def other(packet: Packet) -> int:
        return 1 - int(packet.header.record["values"]["chosen"])

    return forger.refuse(
        {
            ("conclude", "protocol-failed"): {
                "another run than the rule's": lambda p: tell_runs(p, chosen=other(p)),
                "a run that there is not": lambda p: tell_runs(p, chosen=2),
                "figures of one run": lambda p: tell_runs(p, figures=figures(p)[:1]),
            },
            ("conclude", "task-refused"): {
                "others were told of another run": lambda p: say(p, chosen=other(p))
            },
        }
    )


def _refuse_secrets(forger: Forger) -> list[Refusal]:
    own = GroupSecret(scope="row", secret=_OTHER)
    digests = Digests(rows=_OTHER, columns=_OTHER)
    return forger.refuse(
        {
            ("compare-digests", "envelope-refused"): {
                "a secret is withheld": empty,
                "a secret of a group that its sender does not lead": lambda p: (
                    forger.seal(p, 0, own)
                ),
            },
            ("add-up", "envelope-refused"): {
                "the leader's digests are withheld": empty
            },
            ("add-up", "protocol-failed"): {
                "the leader holds other columns": lambda p: forger.seal(p, 0, digests)
            },
        }
    )


def _refuse_sums(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("add-up", "task-refused", 2): {
                "a total of which others were told otherwise": lambda p: hold(
                    p, total=p.arrays["total"] + np.uint64(1)
                )
            },
            ("add-up", "protocol-failed", 2): {
                "a word of a total is one more": lambda p: add(p, "total", 0, 1),
                "the tag of a total is one more": lambda p: add(p, "total", -1, 1),
                "the tag is p more": lambda p: add(p, "total", -1, P),
                "a phase was left out": lambda p: tell_all(say(p, phase=4)),
            },
            ("add-up", "invalid-array", 2): {
                "a total without its tag": lambda p: cut(p, "total")
            },
        }
    )


def _refuse_upload(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("sign", "task-refused", 1): {
                "a second upload": lambda p: ask(p, "upload", "project")
            },
            (RESULT, "task-refused"): {
                "labels of fewer rows": lambda p: hold(
                    p, labels=p.arrays["labels"][:-1]
                )
            },
        }
    )
