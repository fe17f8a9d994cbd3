"""What is told of a contribution before it leaves."""

from __future__ import annotations

import numpy as np

from clustering_protocols.engine import packets
from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.protocols.dummy.messages import Counted

ADDRESS = packets.Address(
    session="s", agreement="0" * 64, slot="a", stage="count", round=3, attempt=1
)
LABEL = packets.EnvelopeLabel(peer="b", kind="word", stage="count", round=3, attempt=1)


def inspected(sealed: bytes, last: int = 2) -> Inspection:
    record = Counted(positions=np.array([0, 1, last]))
    envelope = packets.Envelope(label=LABEL, sealed=sealed)
    return Inspection.of(packets.write(ADDRESS, record, envelopes=[envelope]), {})


def test_what_is_sealed_anew_is_asked_about_once() -> None:
    """A process that begins again seals again: other bytes, the same question."""
    assert inspected(b"one").digest == inspected(b"two").digest


def test_another_value_or_another_receiver_is_another_question() -> None:
    first = inspected(b"one")
    assert first.digest != inspected(b"one", last=1).digest
    record = Counted(positions=np.array([0, 1, 2]))
    label = LABEL.model_copy(update={"peer": "c"})
    other = packets.Envelope(label=label, sealed=b"one")
    sent = packets.write(ADDRESS, record, envelopes=[other])
    assert Inspection.of(sent, {}).digest != first.digest
