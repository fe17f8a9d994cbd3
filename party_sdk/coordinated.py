"""One session, seen by its coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from clustering_protocols import engine, proofs
from clustering_protocols.enrolment import check_agreement
from clustering_protocols.errors import AuditBroken, NotReady
from clustering_protocols.profiles import Profile
from clustering_protocols.proofs import SignedLog
from clustering_protocols.records import Record
from clustering_protocols.terms import Terms, read_terms
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import SessionState
from party_sdk.client import AnalystClient, end_of
from party_sdk.identities import Acquaintances
from party_sdk.invitations import Invitation
from party_sdk.kept_sessions import Kept
from party_sdk.receivers import OwnReceivers
from party_sdk.roster import Roster
from party_sdk.sealing import SecretFiles

_WATCH_SECONDS = 1.0


class CoordinatedSession:
    """One session, seen by its coordinator."""

    def __init__(self, session_id: str, client: AnalystClient, home: Path) -> None:
        self.id = session_id
        self._client = client
        self._home = home

    def invite(self, slots: Sequence[str] | None = None) -> dict[str, str]:
        """Return a new invitation per slot, by default for all that are free.

        Hand them over on a channel that the analyst cannot read: each holds the
        session secret, which says who was invited, and your signature under the terms.
        """
        kept = self._kept()
        return {
            slot: str(
                Invitation(
                    url=kept.url,
                    session=self.id,
                    slot=slot,
                    code=code,
                    secret=kept.secret(self.id),
                    terms=kept.terms_digest,
                    coordinator=kept.coordinator,
                    signature=kept.signature,
                )
            )
            for slot, code in self._client.invite(self.id, slots).items()
        }

    def status(self) -> SessionStatus:
        """Return where the session stands."""
        return self._client.session(self.id)

    def wait(
        self, on_progress: Callable[[SessionStatus], None] | None = None
    ) -> SessionStatus:
        """Return once the session is complete; raise what ended it otherwise."""
        last: SessionStatus | None = None
        while True:
            status = self.status()
            if on_progress is not None and status != last:
                on_progress(status)
            if status.state is SessionState.COMPLETED:
                return status
            if status.over:
                raise end_of(status.state, status.reason, status.detail)
            last = status
            time.sleep(_WATCH_SECONDS)

    def choose(self, n_clusters: int) -> SessionStatus:
        """Choose the run that counts, of a session that waits for it.

        Raises
        ------
        InvalidParameters, NotReady, RoundClosed
            If there is no such run, its figures are not there yet, or another was chosen.
        """
        return self._client.choose(self.id, n_clusters)

    def extend(self, seconds: float) -> SessionStatus:
        """Wait so many seconds longer for whoever is awaited now.

        Raises
        ------
        NotReady, SessionOver
            While the analyst is at work, or once the session has ended.
        """
        longer = self.status().deadline + timedelta(seconds=seconds)
        return self._client.extend(self.id, longer)

    def profiles(self) -> tuple[Profile, ...]:
        """Return what the clusters are like, rounded, where everybody may read it.

        Empty before it is told.
        """
        if not self.status().profiles:
            return ()
        return self._client.profiles(self.id)

    def summary(self) -> Record:
        """Return what the terms let the coordinator read of the result."""
        return engine.read_result(self.agreement(), self._client.result(self.id))

    def roster(self) -> Roster:
        """Return who takes part, and the safety number, computed and checked here.

        Raises
        ------
        NotReady
            Until all have joined.
        AgreementMismatch, KeyNotAuthentic
            If terms or roster are not those that were signed.
        """
        return Roster.of(self.agreement(), Acquaintances(self._home))

    def agreement(self) -> bytes:
        """Return the agreement, after holding it against what was signed here.

        Raises what :meth:`roster` raises.
        """
        kept = self._kept()
        agreement = self._client.agreement(self.id)
        check_agreement(agreement, kept.terms.encode(), kept.secret(self.id))
        return agreement

    def audit(self) -> SignedLog:
        """Return who sent or received which digest when, signed by the analyst.

        Where the session was opened on this machine the signature has been held against
        the key that the terms name, elsewhere against the one that the analyst shows.

        Raises
        ------
        AuditBroken
            If a line was changed, or is missing, or the session was opened with other
            terms than were signed on this machine.
        KeyNotAuthentic
            If somebody else signed it.
        """
        lines, signature = self._client.audit(self.id)
        log = proofs.signed_audit(lines, self._analyst(), signature)
        entries = log.entries()
        if self.is_ours and not _is_opening(entries, self._kept().terms_digest):
            raise AuditBroken("The session was opened with other terms than yours.")
        return log

    @property
    def receivers(self) -> OwnReceivers:
        """Return whom the analyst tells who is awaited and how the session ends."""
        return OwnReceivers(self._client, self.id)

    @property
    def terms(self) -> Terms:
        """Return the terms that were signed; :class:`NotReady` on another machine."""
        return read_terms(self.terms_text)

    @property
    def terms_text(self) -> bytes:
        """Return their exact text; :class:`NotReady` on another machine."""
        return self._kept().terms.encode()

    @property
    def url(self) -> str:
        """Return where the session was opened; :class:`NotReady` on another machine."""
        return self._kept().url

    def _analyst(self) -> str:
        named = self.terms.identities.analyst if self.is_ours else None
        return named or self._client.identity()

    def cancel(self, reason: str = "") -> SessionStatus:
        """End the session; the parties read the reason: a line, 200 characters at most."""
        return self._client.cancel(self.id, reason)

    def delete(self) -> None:
        """Remove all of it but its audit at the analyst; one that runs is cancelled."""
        self._client.delete(self.id)

    @property
    def is_ours(self) -> bool:
        """Return whether the session was opened on this machine."""
        return self._path.exists()

    @property
    def _path(self) -> Path:
        return self._home / "sessions" / f"{self.id}.json"

    def _kept(self) -> Kept:
        if not self._path.exists():
            raise NotReady(f"The secret of session {self.id!r} is not on this machine.")
        return read_kept(SecretFiles(self._home), self._path)


def _is_opening(entries: Sequence[Mapping[str, Any]], terms_digest: str) -> bool:
    return bool(entries) and entries[0].get("digest") == terms_digest


def read_kept(files: SecretFiles, path: Path) -> Kept:
    """Return what a home keeps of a session; :class:`NotReady` where it was damaged."""
    try:
        return Kept.model_validate_json(files.read(path))
    except ValidationError:
        raise NotReady(
            f"{path} was changed, or written by another release: put back what was there."
        ) from None
