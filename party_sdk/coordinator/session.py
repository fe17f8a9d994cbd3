"""A session as its coordinator sees it, and the part of it that the home stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from clustering_protocols import engine
from clustering_protocols.common.errors import AuditBroken, NotReady
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.record import Record
from clustering_protocols.terms import signed_logs
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.roster_entries import (
    check_agreement,
    derive_session_secret,
)
from clustering_protocols.terms.signed_logs import SignedLog
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client.analyst import CoordinatedAnalyst, end_error
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.home.identities import TrustedInstitutions
from party_sdk.home.store import store_of
from party_sdk.party.notifications import OwnReceivers
from party_sdk.party.roster import Roster

_WATCH_SECONDS = 1.0


class CoordinatedSession:
    """One session, as its coordinator sees it."""

    def __init__(
        self, session_id: str, analyst: CoordinatedAnalyst, home: Path
    ) -> None:
        self.id = session_id
        self._analyst = analyst
        self._home = home

    def invite(self, slots: Sequence[str] | None = None) -> dict[str, str]:
        """Create a new invitation for each slot, by default for all free slots.

        Send the invitations through a channel that the analyst cannot read, because
        each of them contains the session secret. It also contains your signature on the
        terms.
        """
        stored = self._load_stored()
        return {
            slot: str(
                Invitation(
                    url=stored.url,
                    session=self.id,
                    slot=slot,
                    code=code,
                    secret=stored.secret(self.id),
                    terms=stored.terms_digest,
                    coordinator=stored.coordinator,
                    signature=stored.signature,
                )
            )
            for slot, code in self._analyst.invite(self.id, slots).items()
        }

    def status(self) -> SessionStatus:
        """Fetch the status of the session."""
        return self._analyst.session(self.id)

    def wait(
        self, on_progress: Callable[[SessionStatus], None] | None = None
    ) -> SessionStatus:
        """Wait until the session is completed; raise an error if it ended otherwise."""
        last: SessionStatus | None = None
        while True:
            status = self.status()
            if on_progress is not None and status != last:
                on_progress(status)
            if status.state is SessionState.COMPLETED:
                return status
            if status.is_over:
                raise end_error(status.state, status.reason, status.detail)
            last = status
            time.sleep(_WATCH_SECONDS)

    def choose(self, n_clusters: int) -> SessionStatus:
        """Choose the run that becomes the result.

        Raises InvalidParameters if there is no such run, NotReady if the runs are not
        finished, and RoundClosed if another run has been chosen.
        """
        return self._analyst.choose(self.id, n_clusters)

    def extend(self, seconds: float) -> SessionStatus:
        """Extend the deadline of the parties that have not answered.

        Raises NotReady while the analyst is computing, and SessionOver after the end.
        """
        deadline = self.status().deadline + timedelta(seconds=seconds)
        return self._analyst.extend(self.id, deadline)

    def profiles(self) -> tuple[Profile, ...]:
        """Fetch the rounded profiles of the clusters; empty if none are published."""
        if not self.status().profiles:
            return ()
        return self._analyst.profiles(self.id)

    def summary(self) -> Record:
        """Fetch the coordinator's part of the result."""
        return engine.read_result(self.agreement(), self._analyst.result(self.id))

    def roster(self) -> Roster:
        """Return the verified members and their safety number.

        Raises NotReady until all parties have joined. Raises AgreementMismatch or
        KeyNotAuthentic if the terms or the roster differ from the signed ones.
        """
        return Roster.of(self.agreement(), TrustedInstitutions(self._home))

    def agreement(self) -> bytes:
        """Fetch the agreement, and verify it against the signed terms.

        Raises the same errors as :meth:`roster`.
        """
        stored = self._load_stored()
        agreement = self._analyst.agreement(self.id)
        check_agreement(agreement, stored.terms.encode(), stored.secret(self.id))
        return agreement

    def audit(self) -> SignedLog:
        """Fetch the log of all digests sent and received, which the analyst has signed.

        If the session was opened on this machine, the signature is verified with the
        key in the terms, otherwise with the analyst's current key.

        Raises AuditBroken if a line was changed or is missing, or if the session was
        opened with terms other than those signed here. Raises KeyNotAuthentic if
        somebody else signed the log.
        """
        lines, signature = self._analyst.audit(self.id)
        named_key = self.terms.identities.analyst if self.is_ours else None
        log = signed_logs.build_signed_audit(
            lines, named_key or self._analyst.identity(), signature
        )
        entries = log.verified_entries()
        if self.is_ours and not (
            bool(entries)
            and entries[0].get("digest") == self._load_stored().terms_digest
        ):
            raise AuditBroken("The session was opened with terms other than yours.")
        return log

    @property
    def receivers(self) -> OwnReceivers:
        """Return the coordinator's addresses for notifications, which can be changed."""
        return OwnReceivers(self._analyst, self.id)

    @property
    def terms(self) -> Terms:
        """Return the signed terms; raise NotReady if another machine opened the session."""
        return read_terms(self.terms_text)

    @property
    def terms_text(self) -> bytes:
        """Return the exact text of the terms; raise NotReady on another machine."""
        return self._load_stored().terms.encode()

    @property
    def url(self) -> str:
        """Return the analyst's address; raise NotReady on another machine."""
        return self._load_stored().url

    def cancel(self, reason: str = "") -> SessionStatus:
        """End the session; the parties can read the reason, of at most 200 characters."""
        return self._analyst.cancel(self.id, reason)

    def delete(self) -> None:
        """Delete the session at the analyst, except for its audit; cancel it if open."""
        self._analyst.delete(self.id)

    @property
    def is_ours(self) -> bool:
        """Return whether the session was opened on this machine, from this home."""
        return StoredSession.load(self._home, self.id) is not None

    def _load_stored(self) -> StoredSession:
        stored = StoredSession.load(self._home, self.id)
        if stored is None:
            raise NotReady(f"The secret of session {self.id!r} is not on this machine.")
        return stored


class StoredSession(BaseModel):
    """The secret of a session and its terms, which ``repr`` does not show."""

    url: str
    entropy: str
    terms: str
    coordinator: str
    signature: str

    @classmethod
    def load(cls, home: Path, session: str) -> Self | None:
        """Load a session that was opened from this home, or return None."""
        statement = "SELECT content FROM sessions WHERE id = ?"
        row = store_of(home).fetch_row(statement, session)
        return cls.model_validate_json(row[0]) if row else None

    def save(self, home: Path, session: str) -> None:
        """Store the session in the database of a home."""
        with store_of(home).transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO sessions VALUES (?, ?)",
                (session, self.model_dump_json()),
            )

    @property
    def terms_digest(self) -> str:
        """Return the digest of the signed terms."""
        return digest(self.terms.encode())

    def secret(self, session: str) -> bytes:
        """Derive the session secret."""
        return derive_session_secret(bytes.fromhex(self.entropy), session)

    def __repr__(self) -> str:
        return "<StoredSession>"

    __str__ = __repr__
