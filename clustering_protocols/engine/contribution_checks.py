"""What a contribution must be: checked before it leaves, on arrival and at its step."""

from __future__ import annotations

from typing_extensions import Buffer

from clustering_protocols.common.errors import AgreementMismatch, Malformed, RoundClosed
from clustering_protocols.contract import Stage
from clustering_protocols.engine import packets, signatures
from clustering_protocols.engine.packets import Packet
from clustering_protocols.engine.stages import load, stage_of
from clustering_protocols.records import hash_chain
from clustering_protocols.records.record import Record


def check_contribution(agreement: bytes, task: Buffer, contribution: Buffer) -> None:
    """Refuse bytes that do not answer a task; see :func:`check_answer`.

    Raises SignatureRefused if it signs another transcript than the task tells.
    """
    session, stages = load(agreement)
    asked, given = packets.read(task), packets.read(contribution)
    record = check_answer(asked, given, stage_of(stages, asked))
    here = given.address
    if asked.history:
        told = hash_chain.digest(asked.history[-1])
        signatures.check_arrived(session, here.stage, told, here.slot, record)
    for label in (envelope.label for envelope in given.envelopes):
        others = set(session.slots) - {here.slot}
        if label.when != here.when or label.peer not in others:
            raise Malformed("An envelope's label names another round or no other slot.")


def check_answer(task: Packet, contribution: Packet, stage: Stage) -> Record:
    """Return the contribution's record if it is what the task asks for.

    The same check runs at the party before it sends and at the analyst on arrival.

    Raises RoundClosed, AgreementMismatch, Malformed, InvalidArray if it belongs
        elsewhere, or is of another kind or size.
    """
    asked, given = task.address, contribution.address
    if (given.round, given.attempt) != (asked.round, asked.attempt):
        raise RoundClosed(
            f"Open is round {asked.round}, attempt {asked.attempt}; the message says "
            f"round {given.round}, attempt {given.attempt}."
        )
    if contribution.history or len(contribution.signatures):
        raise Malformed("A transcript is told to parties, not by them.")
    if contribution.own:
        raise Malformed("A contribution has no fields of its own.")
    if given != asked:
        wrong = [
            name
            for name in type(asked).model_fields
            if getattr(given, name) != getattr(asked, name)
        ]
        raise AgreementMismatch(f"The message differs in {', '.join(wrong)}.")
    answer = stage.answer_to(task.read(stage.tasks).kind)
    expected = task.header.expects
    if expected is None or expected.kind != answer.kind:
        raise Malformed(f"The task does not ask for a {answer.kind!r}.")
    record = contribution.read([answer])
    record.require(expected.dims)
    return record
