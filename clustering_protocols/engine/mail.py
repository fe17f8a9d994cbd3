"""Envelopes on their way: each goes out with the next task of its receiver.

A receiver that is not asked in the next round gets them later; until then the analyst
keeps them in its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from clustering_protocols import codec
from clustering_protocols.arrays import ByteArray
from clustering_protocols.packets import Envelope, EnvelopeLabel

Mail: TypeAlias = Sequence[tuple[str, Envelope]]
"""Receivers, each with an envelope whose label names the sender."""


def posted(sender: str, envelope: Envelope) -> tuple[str, Envelope]:
    """Return the receiver, and the envelope with its sender on the label."""
    label = envelope.label.model_copy(update={"peer": sender})
    return envelope.label.peer, Envelope(label=label, sealed=envelope.sealed)


def keep(mail: Mail) -> ByteArray:
    """Return mail as bytes; none as no bytes."""
    if not mail:
        return np.empty(0, np.uint8)
    header = [[to, envelope.label.model_dump()] for to, envelope in mail]
    arrays = {
        f"envelope.{number}": np.frombuffer(envelope.sealed, np.uint8)
        for number, (_, envelope) in enumerate(mail)
    }
    return np.frombuffer(codec.encode({"mail": header}, arrays), np.uint8)


def kept(content: ByteArray) -> Mail:
    """Return mail from its bytes."""
    if not len(content):
        return []
    header, arrays = codec.decode(content.data)
    return [
        (
            to,
            Envelope(
                label=EnvelopeLabel.model_validate(label),
                sealed=arrays[f"envelope.{number}"].tobytes(),
            ),
        )
        for number, (to, label) in enumerate(header["mail"])
    ]
