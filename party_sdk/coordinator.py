"""Coordinating a session: open it, invite, watch."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, Unpack

from clustering_protocols import engine, proofs, registry
from clustering_protocols.contract import Params
from clustering_protocols.enrolment import check_agreement, sign_terms
from clustering_protocols.errors import (
    AgreementMismatch,
    AuditBroken,
    InvalidParameters,
    NotReady,
)
from clustering_protocols.limits import NAME_PATTERN
from clustering_protocols.profiles import Profile
from clustering_protocols.proofs import SignedLog
from clustering_protocols.records import Record
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import (
    About,
    Identities,
    Layout,
    Terms,
    digest,
    read_terms,
)
from clustering_protocols.wire.answers import SessionLine, SessionStatus
from clustering_protocols.wire.states import SessionState
from party_sdk._files import default_home, private_folder
from party_sdk._transport import Transport
from party_sdk.client import AnalystClient, end_of
from party_sdk.identities import Acquaintances, KnownAnalysts, OwnIdentity
from party_sdk.invitations import Invitation
from party_sdk.kept_sessions import Kept
from party_sdk.receivers import OwnReceivers
from party_sdk.roster import Roster
from party_sdk.sealing import SecretFiles
from party_sdk.wishes import Drawn, Wishes, proposed

_WATCH_SECONDS = 1.0


class Coordinator:
    """Opens sessions on one analyst.

    Parameters
    ----------
    url : str
    key : str
        A coordinator's key (``coterie key create``).
    home : Path, optional
        Where to keep the sessions' secrets and the institution's identity;
        ``$COTERIE_HOME`` or ``~/.coterie``.
    entropy : bytes, optional
        32 bytes from which session secrets and identity follow; from the operating
        system by default, and the identity of the home.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        home: Path | None = None,
        entropy: bytes | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._url = url
        self.entropy = entropy
        self._home = home or default_home()
        self._transport = transport or Transport(url)
        self._client = AnalystClient(self._transport, key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._transport.close()

    def create_session(
        self,
        about: str | About,
        params: Params,
        layout: Layout,
        **wishes: Unpack[Wishes],
    ) -> CoordinatedSession:
        """Open a session, and sign its terms.

        Parameters
        ----------
        about : str or About
            For people: a title, or with it purpose, legal basis and contact.
        params : Params
            Of any protocol, e.g. ``DataCollaboration(n_clusters=3)``.
        layout : Layout
            Which parties there are; ``Lattice(2, 2)`` for a regular one.
        **wishes
            What else terms may say, and the id: see :class:`~party_sdk.wishes.Wishes`.

        Raises
        ------
        AgreementMismatch
            If the analyst drew up other terms than these.
        GuardRefused
            If the analyst shows another key than before.
        """
        return self.open_session(self.draw_up(about, params, layout, **wishes))

    def draw_up(
        self,
        about: str | About,
        params: Params,
        layout: Layout,
        **wishes: Unpack[Wishes],
    ) -> Drawn:
        """Return the terms of a session that is not open yet, to be read before it is.

        Takes what :meth:`create_session` takes.

        Raises
        ------
        GuardRefused
            If the analyst shows another key than before.
        """
        about = About(title=about) if isinstance(about, str) else about
        session_id = wishes.get("session_id") or _id_from(about.title)
        if not re.fullmatch(NAME_PATTERN, session_id):
            raise InvalidParameters(
                f"{session_id!r} is no session id: use a-z, 0-9, '.', '_' and '-'."
            )
        analyst = self.analyst_key(is_new=wishes.get("new_analyst", False))
        identities = Identities(
            coordinator=self._institution().key,
            analyst=analyst,
            slots=dict(wishes.get("expected") or {}),
        )
        proposal = proposed(about, params, layout, identities, wishes)
        return Drawn(
            session=session_id,
            proposal=proposal,
            terms=registry.draw_up(session_id, proposal),
        )

    def open_session(self, drawn: Drawn) -> CoordinatedSession:
        """Sign terms that were drawn up, keep what they need, and have them opened.

        Raises
        ------
        AgreementMismatch
            If the analyst drew up other terms than these.
        """
        session_id, terms = drawn.session, drawn.terms
        institution = self._institution()
        path = private_folder(self._home / "sessions") / f"{session_id}.json"
        files = SecretFiles(self._home)
        before = files.read(path) if path.exists() else None
        entropy = self.entropy or secrets.token_bytes(32)
        kept = Kept(
            url=self._url,
            entropy=Kept.model_validate_json(before).entropy
            if before
            else entropy.hex(),
            terms=terms.decode(),
            coordinator=institution.key,
            signature=sign_terms(institution, digest(terms)),
        )
        if before is None:
            files.write(path, kept.model_dump_json().encode())
        status = self._client.put_session(session_id, drawn.body)
        if status.terms_digest != kept.terms_digest:
            raise AgreementMismatch(
                "The analyst drew up other terms than were asked for: it runs another "
                "release, or changed them."
            )
        files.write(path, kept.model_dump_json().encode())
        return self.session(session_id)

    def analyst_key(self, *, is_new: bool = False) -> str:
        """Return the key that the analyst shows, the same as before at this address.

        Raises
        ------
        GuardRefused
            If it is another one, unless ``is_new``.
        """
        key = self._client.identity()
        KnownAnalysts(self._home).check(self._url, key, is_new=is_new)
        return key

    @property
    def acquaintances(self) -> Acquaintances:
        """Return whom this coordinator knows by a card."""
        return Acquaintances(self._home)

    def _institution(self) -> Institution:
        if self.entropy is not None:
            return Institution.drawn(self.entropy)
        return OwnIdentity(self._home).load_or_make()

    def session(self, session_id: str) -> CoordinatedSession:
        """Return a session that was opened before."""
        return CoordinatedSession(session_id, self._client, self._home)

    def sessions(self) -> list[SessionLine]:
        """Return all sessions of this key, a line each."""
        page = self._client.sessions()
        found = page.sessions
        while page.next is not None:
            page = self._client.sessions(page.next)
            found += page.sessions
        return found


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
        """End the session; the parties read the reason, a line of at most 200 characters."""
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
        return Kept.model_validate_json(SecretFiles(self._home).read(self._path))


def _is_opening(entries: Sequence[Mapping[str, Any]], terms_digest: str) -> bool:
    return bool(entries) and entries[0].get("digest") == terms_digest


def _id_from(title: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "session"
    return f"{slug}-{secrets.token_hex(4)}"
