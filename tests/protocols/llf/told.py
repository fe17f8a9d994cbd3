"""What everybody was told in a session, read from what travelled."""

from __future__ import annotations

from clustering_protocols.engine import packets, transcript
from clustering_protocols.records import hash_chain
from clustering_protocols.simulation import Session


def transcripts(session: Session) -> dict[tuple[int, int], str]:
    """Return the transcript (hex) of every attempt, by round and attempt."""
    found = {}
    for message in session.sent:
        history = packets.read(message.payload).history
        for line in history[-1:]:
            entry = transcript.last([line])
            found[entry.round, entry.attempt] = hash_chain.digest(line)
    return found
