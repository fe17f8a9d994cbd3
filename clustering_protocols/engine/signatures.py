"""The first round and the last: everybody signs what everybody was told.

*Opening*: before any data leaves, all parties sign the transcript, which begins with the
agreement. Each sees all signatures before it answers anything else, and so knows that
nobody was shown another roster.

*Closing*: after the last round of the protocol the digests of the results go into the
transcript, and all who take part sign it. The signatures come with the results: whoever
reads a result knows that everybody was told the same in every round.

| round | task → contribution |
|---|---|
| first | `sign` → `signed` |
| last | `sign` → `signed` |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from cryptography.exceptions import InvalidSignature
from pydantic import Field

from clustering_protocols.arrays import ByteArray
from clustering_protocols.contract import (
    Exchange,
    Outcome,
    Params,
    PartyContext,
    PartyRole,
    Relay,
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.packets import SIGNATURE_BYTES
from clustering_protocols.randomness import length_prefixed
from clustering_protocols.records import Record
from clustering_protocols.secrecy.keys import party_keys

OPENING: Final = "opening"
CLOSING: Final = "closing"


class Sign(Record):
    """Task: sign what everybody was told until now."""

    kind = "sign"


class Signed(Record):
    """Contribution: an Ed25519 signature (hex) under the party's key of the roster."""

    kind = "signed"

    signature: str = Field(pattern=rf"^[0-9a-f]{{{2 * SIGNATURE_BYTES}}}$")


@dataclass(frozen=True)
class Signer(PartyRole[Params, Sign, Record, Record]):
    """Signs; at the end reads the result as the protocol's last stage does."""

    last: Stage | None = None

    def reply(self, context: PartyContext, task: Sign, data: DataSource) -> Reply:
        """Sign the transcript."""
        session = context.session.terms.session
        keys = party_keys(context.entropy, session, context.slot.name)
        signature = keys.signing.sign(statement(context.stage, context.transcript))
        return Reply(contribution=Signed(signature=signature.hex()))

    def conclude(
        self, context: PartyContext, result: Record, data: DataSource | None
    ) -> Outcome:
        """Return what the protocol makes of the result."""
        if self.last is None:
            return super().conclude(context, result, data)
        role: PartyRole[Any, Any, Any, Any] = self.last.party()
        return role.conclude(replace(context, stage=self.last.name), result, data)


def opening() -> Stage:
    """Return the stage of the first round."""
    return Stage(
        name=OPENING,
        analyst=lambda: Relay(Sign()),
        party=Signer,
        exchanges=(Exchange(Sign, Signed),),
    )


def closing(last: Stage, *, least: int) -> Stage:
    """Return the stage of the last round, with the results of the protocol's last stage."""
    return Stage(
        name=CLOSING,
        analyst=lambda: Relay(Sign()),
        party=lambda: Signer(last),
        exchanges=(Exchange(Sign, Signed, least),),
        results=last.results,
        results_to=last.results_to,
    )


def collect(session: SessionContext, given: Mapping[str, Record]) -> ByteArray:
    """Return the signatures that came, (slots, 64), zeros for those that did not."""
    signatures = np.zeros((len(session.slots), SIGNATURE_BYTES), np.uint8)
    for index, slot in enumerate(session.slots):
        if slot in given:
            signed = Signed.narrow(given[slot]).signature
            signatures[index] = np.frombuffer(bytes.fromhex(signed), np.uint8)
    return signatures


def check(
    session: SessionContext,
    stage: str,
    transcript: str,
    signatures: ByteArray,
    least: int,
) -> None:
    """Refuse too few signatures, or one of another transcript.

    Parameters
    ----------
    stage : str
        :data:`OPENING` or :data:`CLOSING`.
    transcript : str
        What must have been signed (hex).
    signatures : uint8 array of shape (slots, 64)
    least : int

    Raises
    ------
    ProtocolFailed
        With the slot that has signed something else.
    """
    if len(signatures) != len(session.slots):
        raise ProtocolFailed("The signatures of all slots are missing.")
    signed = [
        (slot, signature.tobytes())
        for slot, signature in zip(session.slots, signatures, strict=True)
        if signature.any()
    ]
    if len(signed) < least:
        raise ProtocolFailed(f"{len(signed)} parties have signed, not {least}.")
    said = statement(stage, transcript)
    for slot, signature in signed:
        try:
            session.member(slot).keys.verifying.verify(signature, said)
        except (InvalidSignature, ValueError):
            raise ProtocolFailed(
                f"{slot!r} has signed something else than was told here."
            ) from None


def statement(stage: str, transcript: str) -> bytes:
    """Return what is signed: a transcript (hex), in the first round or the last."""
    return length_prefixed("coterie/transcript/1", stage, transcript)
