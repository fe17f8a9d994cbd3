"""Messages of a session of `dummy` at which a party must stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.vectors.forgery import (
    RESULT,
    Forger,
    ask,
    be_of,
    empty,
    grow,
    hold,
    label,
    say,
    shorten,
    spoil,
    stand_at,
    tell,
    tell_all,
)
from benchmarks.vectors.form import Refusal
from clustering_protocols.engine.packets import Packet
from clustering_protocols.protocols.dummy import messages

_OTHER = "ab" * 32


def list_refusals(forger: Forger) -> list[Refusal]:
    """Return the refusals by the second of three parties."""
    return [
        *_refuse_address(forger),
        *_refuse_lines(forger),
        *_refuse_order(forger),
        *_refuse_signatures(forger),
        *_refuse_envelopes(forger),
        *_refuse_content(forger),
        *_refuse_result(forger),
    ]


def list_refusals_of_attempts(forger: Forger) -> list[Refusal]:
    """Return the refusals in the second attempt of a round."""
    return forger.refuse(
        {
            ("count", "task-refused", 1): {
                "an attempt was left out": lambda p: stand_at(
                    tell(p, attempt=3), attempt=3
                ),
                "an attempt without what came in the one before": empty,
            },
        }
    )


def _refuse_address(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("sign", "agreement-mismatch"): {
                "of another session": lambda p: stand_at(p, session="other"),
                "of another agreement": lambda p: stand_at(p, agreement=_OTHER),
                "for another slot": lambda p: stand_at(p, slot="west"),
            },
            ("sign", "malformed"): {
                "of a stage that there is not": lambda p: stand_at(p, stage="upload"),
                "a kind that the stage has not": lambda p: be_of(p, "greet"),
                "without its last byte": shorten,
                "with more in its header": grow,
            },
        }
    )


def _refuse_lines(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("sign", "task-refused"): {
                "lines of another agreement": _name_another_agreement
            },
            ("greet", "task-refused"): {
                "another past": lambda p: tell(p, previous=_OTHER),
                "a line was left out": lambda p: tell(p, number=4),
                "a round was left out": lambda p: stand_at(tell(p, round=3), round=3),
                "the line is of another stage": lambda p: tell(p, stage="count"),
                "the line asks something else": lambda p: tell(p, asks="count"),
                "the line leaves the party out": lambda p: tell(p, left_out=["south"]),
                "others were told otherwise": lambda p: tell(p, told=[_OTHER]),
                "no line at all": lambda p: replace(p, history=[]),
            },
        }
    )


def _refuse_order(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("greet", "task-refused"): {
                "a stage was left out": lambda p: ask(p, "count", "count")
            },
            ("confirm", "task-refused"): {
                "a task that was answered": lambda p: ask(p, "count", "count"),
                "a stage that is over": lambda p: ask(p, "greeting", "greet"),
                "a task that comes too early": lambda p: ask(p, "closing", "sign"),
            },
        }
    )


def _refuse_signatures(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("greet", "protocol-failed"): {
                "a signature of the opening is missing": _blank_last_signature,
                "two signatures were exchanged": lambda p: replace(
                    p, signatures=p.signatures[[1, 0, 2]]
                ),
                "no signature came": lambda p: replace(p, signatures=p.signatures[:0]),
            },
        }
    )


def _refuse_envelopes(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("count", "envelope-refused"): {
                "a bit of an envelope": spoil,
                "another sender on the label": lambda p: label(p, peer="west"),
                "a sender that there is not": lambda p: label(p, peer="east"),
                "another kind on the label": lambda p: label(p, kind="greet"),
                "another stage on the label": lambda p: label(p, stage="count"),
                "a stage that seals nothing": lambda p: label(p, stage="opening"),
                "an earlier round on the label": lambda p: label(p, round=1),
                "the round of the task on the label": lambda p: label(p, round=3),
                "another attempt on the label": lambda p: label(p, attempt=2),
            },
            ("count", "protocol-failed"): {"a word is withheld": empty},
            ("confirm", "protocol-failed"): {
                "another word comes back": lambda p: forger.seal(
                    p, 0, messages.Word(word=np.array([7], np.uint64))
                )
            },
        }
    )


def _refuse_content(forger: Forger) -> list[Refusal]:
    return forger.refuse(
        {
            ("confirm", "task-refused"): {
                "another number than others were told": lambda p: say(p, total=34)
            },
            ("confirm", "protocol-failed"): {
                "another number of rows": lambda p: tell_all(say(p, total=34))
            },
            ("confirm", "malformed"): {
                "a number that is a text": lambda p: tell_all(say(p, total="33")),
                "a value that nobody knows": lambda p: tell_all(say(p, more=1)),
            },
            ("confirm", "invalid-array"): {
                "an array that nobody knows": lambda p: tell_all(hold(p, x=np.eye(1)))
            },
        }
    )


def _refuse_result(forger: Forger) -> list[Refusal]:
    labels = forger.result.arrays["labels"]
    return forger.refuse(
        {
            (RESULT, "protocol-failed"): {
                "a signature of the closing is missing": _blank_last_signature,
                "no signature of the closing": lambda p: replace(
                    p, signatures=p.signatures[:0]
                ),
            },
            (RESULT, "task-refused"): {
                "another result than was told": lambda p: hold(p, labels=labels[::-1])
            },
            (RESULT, "invalid-array"): {
                "a label below zero": lambda p: hold(p, labels=labels - 1)
            },
            (RESULT, "malformed"): {
                "a kind that is no result": lambda p: be_of(p, "greet")
            },
        }
    )


def _name_another_agreement(packet: Packet) -> Packet:
    first, *lines = packet.history
    changed = first.replace(packet.address.agreement, _OTHER)
    return replace(packet, history=[changed, *lines])


def _blank_last_signature(packet: Packet) -> Packet:
    signatures = packet.signatures.copy()
    signatures[-1] = 0
    return replace(packet, signatures=signatures)
