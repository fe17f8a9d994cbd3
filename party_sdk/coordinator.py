"""Coordinating: open sessions, find those that were opened."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from pathlib import Path
from typing import Self, Unpack

from clustering_protocols import registry
from clustering_protocols.contract import Params
from clustering_protocols.enrolment import sign_terms
from clustering_protocols.errors import (
    AgreementMismatch,
    CoterieError,
    InvalidParameters,
    SessionExists,
    Timeout,
    VersionMismatch,
)
from clustering_protocols.limits import NAME_PATTERN
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import About, Identities, Layout, digest
from clustering_protocols.wire.answers import SessionLine
from party_sdk._files import default_home, private_folder
from party_sdk._transport import Transport
from party_sdk.client import AnalystClient
from party_sdk.coordinated import CoordinatedSession, read_kept
from party_sdk.identities import Acquaintances, KnownAnalysts, OwnIdentity
from party_sdk.kept_sessions import Kept
from party_sdk.sealing import SecretFiles
from party_sdk.wishes import Drawn, Wishes, proposed


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
        SessionExists
            If this home keeps another session of this id: its secret would be lost.
        AgreementMismatch
            If the analyst drew up other terms than these.
        """
        session_id, terms = drawn.session, drawn.terms
        institution = self._institution()
        path = private_folder(self._home / "sessions") / f"{session_id}.json"
        files = SecretFiles(self._home)
        before = read_kept(files, path) if path.exists() else None
        if before is not None:
            self._check_same(session_id, before, terms)
        entropy = self.entropy or secrets.token_bytes(32)
        kept = Kept(
            url=self._url,
            entropy=before.entropy if before else entropy.hex(),
            terms=terms.decode(),
            coordinator=institution.key,
            signature=sign_terms(institution, digest(terms)),
        )
        if before is None:
            files.write(path, kept.model_dump_json().encode())
        try:
            status = self._client.put_session(session_id, drawn.body)
        except CoterieError as error:
            is_refused = error.problem.status < 500 and not isinstance(error, Timeout)
            if is_refused and before is None:  # the id is free for other terms
                path.unlink()
            raise
        if status.terms_digest != kept.terms_digest:
            raise AgreementMismatch(
                "The analyst drew up other terms than were asked for: it runs another "
                "release, or changed them."
            )
        files.write(path, kept.model_dump_json().encode())
        return self.session(session_id)

    def _check_same(self, session_id: str, before: Kept, terms: bytes) -> None:
        """Let a session be opened again, and no other one in its place."""
        if (before.url, before.terms) != (self._url, terms.decode()):
            raise SessionExists(
                f"This home keeps the secret of a session {session_id!r} at {before.url}, "
                "which has other terms or is another one."
            )

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

    def sessions(
        self,
        limit: int | None = None,
        *,
        state: str = "",
        owner: str = "",
        awaited: str = "",
        since: datetime | None = None,
        before: datetime | None = None,
    ) -> list[SessionLine]:
        """Return the sessions of this key, a line each, the last to change first.

        Parameters
        ----------
        limit : int, optional
            How many at most; by default all.
        state : str
            ``open``, ``over`` or one state; empty for all.
        owner : str
            The label of a key or the id of a principal: administrators see all owners.
        awaited : str
            A slot for which they wait.
        since, before : datetime, optional
            Bounds of their last change; the second is not included.

        Raises
        ------
        VersionMismatch
            If they are to be filtered, and the analyst is of a release that cannot.
        """
        texts = {"state": state, "owner": owner, "awaited": awaited}
        times = {"changed_since": since, "changed_before": before}
        filters = {name: text for name, text in texts.items() if text}
        filters |= {name: at.isoformat() for name, at in times.items() if at}
        found: list[SessionLine] = []
        after: str | None = ""
        while after is not None and (limit is None or len(found) < limit):
            page = self._client.sessions(after, filters)
            if filters and any(line.waiting_since is None for line in page.sessions):
                raise VersionMismatch("This analyst is of a release without filters.")
            found += page.sessions
            after = page.next
        return found[:limit]


def _id_from(title: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "session"
    return f"{slug}-{secrets.token_hex(4)}"
