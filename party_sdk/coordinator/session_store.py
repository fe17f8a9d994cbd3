"""What a coordinator keeps of a session that it opened."""

from __future__ import annotations

from pydantic import BaseModel

from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.roster_entries import session_secret


class StoredSession(BaseModel):
    """The secret of a session, and its own terms; its ``repr`` shows nothing of them."""

    url: str
    entropy: str
    terms: str
    coordinator: str
    signature: str

    @property
    def terms_digest(self) -> str:
        """Return the digest of the terms that the coordinator signed."""
        return digest(self.terms.encode())

    def secret(self, session: str) -> bytes:
        """Return the session secret."""
        return session_secret(bytes.fromhex(self.entropy), session)

    def __repr__(self) -> str:
        return "<Kept>"

    __str__ = __repr__
