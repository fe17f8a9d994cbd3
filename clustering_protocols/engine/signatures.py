"""The first and the last round of a session, in which all parties sign the transcript.

*Opening*: before any data are sent, all parties sign the transcript, which begins with
the agreement. Each party receives all signatures before it answers anything else, and
therefore knows that all have the same roster.

*Closing*: after the last round of the protocol, the digests of the results are added to
the transcript, and all participants sign it. The signatures accompany the results, so
anyone who reads a result knows that all parties have the same transcript. The task
contains the number of the chosen run and, if there are several, the figures of all.

| round | task → contribution |
|---|---|
| first | `sign` → `signed` |
| last | `conclude` → `signed` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from cryptography.exceptions import InvalidSignature
from pydantic import Field

from clustering_protocols.common.errors import (
    Malformed,
    ProtocolFailed,
    SignatureRefused,
)
from clustering_protocols.contract import (
    Exchange,
    Outcome,
    Params,
    PartyContext,
    PartyRole,
    Reply,
    SessionContext,
    Stage,
    narrow_all,
)
from clustering_protocols.contract.published import Assignment
from clustering_protocols.engine.cluster_numbers import renumber_outcome
from clustering_protocols.engine.packets import SIGNATURE_BYTES
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.keys import party_keys
from clustering_protocols.shared_stages.profiles import OutcomeReader
from clustering_protocols.shared_stages.profiles.messages import TakeLabels

OPENING: Final = "opening"
CLOSING: Final = "closing"


class Sign(Record):
    """A task that asks for a signature of the transcript so far."""

    kind = "sign"


class Conclude(Record):
    """A task to sign, with the figures of all runs; the party remembers the task.

    figures: the figures of each run, in order; empty if the protocol computes none, or
        the session has one run.
    chosen: the number of the run to which the results belong, from 0.
    """

    kind = "conclude"

    figures: list[Figures]
    chosen: int = Field(ge=0)


class TranscriptSignature(Record):
    """A contribution with an Ed25519 signature (hex) by the party's roster key."""

    kind = "signed"
    reach = "agreement"
    meaning = "Your signature of what all parties received."

    signature: str = Field(pattern=rf"^[0-9a-f]{{{2 * SIGNATURE_BYTES}}}$")


@dataclass(frozen=True)
class Signer(PartyRole[Params, Sign | Conclude, Record, Record]):
    """The party's role in both rounds: it signs, and at the end reads the result."""

    final_stages: tuple[Stage, ...] = ()

    def reply(
        self, context: PartyContext, task: Sign | Conclude, data: DataSource
    ) -> Reply:
        """Sign the transcript, after checking the choice of a run."""
        if isinstance(task, Conclude):
            check_chosen_run(context, task.figures, task.chosen)
            assigned = context.memory.get(Assignment)
            if assigned is not None and assigned.chosen != task.chosen:
                raise ProtocolFailed(
                    "The analyst chose a run other than the one whose labels it sent."
                )
        session = context.session.terms.session
        keys = party_keys(context.entropy, session, context.slot.name)
        signature = keys.signing.sign(bytes_to_sign(context.stage, context.transcript))
        remember = [task] if isinstance(task, Conclude) else []
        return Reply(
            contribution=TranscriptSignature(signature=signature.hex()),
            remember=remember,
        )

    def conclude(
        self, context: PartyContext, result: Record, data: DataSource | None
    ) -> Outcome:
        """Return the outcome that the protocol computes from the result."""
        if not self.final_stages:
            return super().conclude(context, result, data)
        # If a quorum suffices, the party may have missed the last round.
        choice = context.memory.get(Conclude) or Conclude(figures=[], chosen=0)
        outcome = compute_outcome(
            self.final_stages, context, result, data, choice.chosen
        )
        figures = tuple(choice.figures) or outcome.figures
        return replace(outcome, figures=figures, chosen=choice.chosen)


def build_opening() -> Stage:
    """Return the stage that consists of the first round."""
    exchange = Exchange(Sign, TranscriptSignature)
    return Stage.relaying(exchange, name=OPENING, party=Signer)


def build_closing(final_stages: tuple[Stage, ...], *, least: int) -> Stage:
    """Return the stage of the last round, which delivers the protocol's results.

    final_stages: the protocol's last stage, or the last stage of each run.
    least: how often each party has to sign: 0 if a quorum suffices, otherwise 1.
    """
    stage = Stage.relaying(  # but the engine opens the round itself
        Exchange(Conclude, TranscriptSignature, least),
        name=CLOSING,
        party=lambda: Signer(final_stages),
    )
    last = final_stages[0]
    return replace(stage, results=last.results, results_to=last.results_to)


def collect_signatures(
    session: SessionContext, answers: Mapping[str, Record]
) -> ByteArray:
    """Return the signatures (slots, 64) in the answers, with zeros for missing ones."""
    signatures = np.zeros((len(session.slots), SIGNATURE_BYTES), np.uint8)
    for slot, answer in narrow_all(TranscriptSignature, answers).items():
        signature = np.frombuffer(bytes.fromhex(answer.signature), np.uint8)
        signatures[session.slots.index(slot)] = signature
    return signatures


def check_signatures(
    session: SessionContext,
    stage: str,
    transcript: str,
    signatures: ByteArray,
    minimum: int,
) -> None:
    """Raise :class:`ProtocolFailed` if signatures are too few, or one is invalid.

    stage: :data:`OPENING` or :data:`CLOSING`.
    transcript: the transcript (hex) that the parties must have signed.
    signatures: uint8 (slots, 64).
    """
    if len(signatures) != len(session.slots):
        raise ProtocolFailed("The signatures of all slots are missing.")
    signed = [
        (slot, signature.tobytes())
        for slot, signature in zip(session.slots, signatures, strict=True)
        if signature.any()
    ]
    if len(signed) < minimum:
        raise ProtocolFailed(f"{len(signed)} parties have signed, not {minimum}.")
    for slot, signature in signed:
        if not _is_signed(session, slot, stage, transcript, signature):
            raise ProtocolFailed(f"{slot!r} has not signed this transcript.")


def check_uploaded_signature(
    session: SessionContext, stage: str, transcript: str, slot: str, record: Record
) -> None:
    """Raise :class:`SignatureRefused` unless the slot signed this transcript (hex).

    The check takes place on arrival, when the slot can still send a correct signature.
    Records of other kinds are not checked.
    """
    if not isinstance(record, TranscriptSignature):
        return
    signature = bytes.fromhex(record.signature)
    if not _is_signed(session, slot, stage, transcript, signature):
        raise SignatureRefused(f"{slot!r} did not sign its transcript in the {stage}.")


def _is_signed(
    session: SessionContext, slot: str, stage: str, transcript: str, signature: bytes
) -> bool:
    content = bytes_to_sign(stage, transcript)
    try:
        session.member(slot).keys.verifying_key.verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


def bytes_to_sign(stage: str, transcript: str) -> bytes:
    """Return the bytes to be signed, which contain a transcript (hex) and the stage."""
    return length_prefixed("coterie/transcript/1", stage, transcript)


# Results, which the last stage of the chosen run reads for profiles or at the end


def compute_outcome(
    final_stages: Sequence[Stage],
    context: PartyContext,
    result: Record,
    data: DataSource | None,
    chosen: int,
) -> Outcome:
    """Return the outcome that the protocol computes from a result.

    final_stages: the protocol's last stage, or the last stage of each run.
    chosen: the number of the run.

    Raises ProtocolFailed if a label is not the number of a cluster.
    """
    last = final_stages[min(chosen, len(final_stages) - 1)]
    role: PartyRole[Any, Any, Any, Any] = last.party()
    context = replace(context.for_run(last.run), stage=last.name)
    outcome = role.conclude(context, result, data)
    sizes = outcome.cluster_sizes
    if sizes is not None and (outcome.labels >= len(sizes)).any():
        raise ProtocolFailed("A label is not the number of a cluster.")
    return renumber_outcome(context.session, outcome)


def build_outcome_reader(final_stages: Sequence[Stage]) -> OutcomeReader:
    """Return a function that computes the outcome of a result before the closing."""

    def read_outcome(
        context: PartyContext, task: TakeLabels, data: DataSource
    ) -> Outcome:
        check_chosen_run(context, task.figures, task.chosen)
        header, arrays = codec.decode(task.result.data)
        for kind in final_stages[0].results:
            if kind.kind == header.get("kind"):
                result = kind.parse(header, arrays)
                return compute_outcome(final_stages, context, result, data, task.chosen)
        raise Malformed("The record with labels is not a result of this protocol.")

    return read_outcome


def check_chosen_run(
    context: PartyContext, figures: Sequence[Figures], chosen: int
) -> None:
    """Raise :class:`ProtocolFailed` if a run was chosen against the terms' rule.

    It is also raised if a figure in the task differs from one that this party computed.
    """
    session = context.session
    if figures and len(figures) != len(session.runs):
        raise ProtocolFailed(
            "The analyst reports figures for the wrong number of runs."
        )
    if chosen >= len(session.runs):
        raise ProtocolFailed("The analyst chose a run that does not exist.")
    for run, reported in enumerate(figures):
        own = context.memory.scope_to_run(run).get(Figures)
        if own is not None and not own.agrees_with(reported):
            raise ProtocolFailed(
                "The analyst reports figures that differ from those of this party."
            )
    evaluation = session.terms.evaluation
    if evaluation is None or evaluation.choose == "later":
        return
    if chosen != evaluation.best_run(figures):
        raise ProtocolFailed(
            "The analyst did not choose the run that the rule selects."
        )
