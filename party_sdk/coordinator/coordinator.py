"""The coordinator, who opens sessions and later looks them up."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from clustering_protocols import session_terms
from clustering_protocols.common.errors import (
    AgreementMismatch,
    CoterieError,
    InvalidParameters,
    SessionExists,
    Timeout,
    VersionMismatch,
)
from clustering_protocols.common.limits import NAME_PATTERN
from clustering_protocols.contract import Params
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.roster_entries import sign_terms
from clustering_protocols.terms.terms import (
    About,
    Identities,
    Layout,
    SessionRequest,
    read_terms,
)
from clustering_protocols.wire.answers import SessionLine, SessionPage
from party_sdk.analyst_client.analyst import CoordinatedAnalyst
from party_sdk.analyst_client.connections import iterate_pages
from party_sdk.analyst_client.http_analyst import connect
from party_sdk.coordinator.session import CoordinatedSession, StoredSession
from party_sdk.home.files import default_home
from party_sdk.home.identities import OwnIdentity, TrustedInstitutions, pin_analyst
from party_sdk.home.store import store_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTerms:
    """The exact text of terms, and the request from which the analyst rebuilds it."""

    session: str
    request: SessionRequest
    terms: bytes


class Coordinator:
    """Opens and lists the sessions of a coordinator on one analyst.

    key: a coordinator's key (``coterie key create``).
    home: the folder of the sessions' secrets and the institution's identity; by default
        ``$COTERIE_HOME`` or ``~/.coterie``.
    entropy: 32 bytes from which the session secrets and the identity are derived; by
        default the secrets are random, and the identity is that of the home.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        home: Path | None = None,
        entropy: bytes | None = None,
        analyst: CoordinatedAnalyst | None = None,
    ) -> None:
        self._url = url
        self.entropy = entropy
        self._home = home or default_home()
        self._analyst = (analyst or connect(url)).as_coordinator(key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._analyst.close()

    def create_session(
        self,
        about: str | About,
        params: Params,
        layout: Layout,
        **options: Any,
    ) -> CoordinatedSession:
        """Write the terms of a session, sign them, and open the session.

        about: a title, or a title with purpose, legal basis and contact.
        params: those of a protocol, e.g. ``DataCollaboration(n_clusters=3)``.
        layout: the parties; ``Layout.lattice(2, 2)`` returns a regular layout.
        **options: further arguments of :meth:`draw_up`.

        Raises AgreementMismatch if the analyst's terms differ. Raises GuardRefused if
        the analyst's key has changed.
        """
        return self.open_session(self.draw_up(about, params, layout, **options))

    def draw_up(
        self,
        about: str | About,
        params: Params,
        layout: Layout,
        *,
        session_id: str | None = None,
        seed: int | None = None,
        expected: Mapping[str, str] | None = None,
        new_analyst: bool = False,
        **sections: Any,
    ) -> DrawnTerms:
        """Write the terms of a session without opening it.

        about, params, layout: as for :meth:`create_session`.
        session_id: by default made from the title. Opening the session again with the
            same id and terms changes nothing.
        seed: the seed of the analyst's random starts; by default that of the session
            with this id if this home stores one, otherwise random.
        expected: for each slot, the public key of the only institution that may take
            it. Other slots are open to anyone with their invitation.
        new_analyst: whether the key of the analyst at this address may have changed.
        **sections: other sections of the terms, e.g. ``deadlines`` and ``release``: see
            :class:`~clustering_protocols.terms.terms.SessionRequest`. None means the
            default.

        Raises GuardRefused if the analyst's key has changed. Raises InvalidParameters
        if a section is unknown or invalid, or if a required parameter is missing.
        """
        session_terms.check_required_choices(params)
        about = About(title=about) if isinstance(about, str) else about
        if not session_id:
            slug = re.sub(r"[^a-z0-9]+", "-", about.title.lower()).strip("-")[:40]
            session_id = f"{slug or 'session'}-{secrets.token_hex(4)}"
        if not re.fullmatch(NAME_PATTERN, session_id):
            raise InvalidParameters(
                f"{session_id!r} is not a session id: use a-z, 0-9, '.', '_' and '-'."
            )
        if seed is None:
            stored = StoredSession.load(self._home, session_id)
            seed = (
                secrets.randbits(52)
                if stored is None
                else read_terms(stored.terms.encode()).seed
            )
        analyst = self.analyst_key(is_new=new_analyst)
        identities = Identities(
            coordinator=self._load_institution().key,
            analyst=analyst,
            slots=dict(expected or {}),
        )
        request = session_terms.build_request(
            params,
            layout,
            about=about,
            identities=identities,
            seed=seed,
            **sections,
        )
        return DrawnTerms(
            session=session_id,
            request=request,
            terms=session_terms.draw_up_terms(session_id, request),
        )

    def open_session(self, drawn_terms: DrawnTerms) -> CoordinatedSession:
        """Sign the terms, store the session's secret, and open the session.

        Raises SessionExists if this home stores a different session with this id,
        because its secret would be lost. Raises AgreementMismatch if the analyst's
        terms differ.
        """
        session_id, terms = drawn_terms.session, drawn_terms.terms
        institution = self._load_institution()
        stored_before = StoredSession.load(self._home, session_id)
        requested = (self._url, terms.decode())
        if (
            stored_before is not None
            and (stored_before.url, stored_before.terms) != requested
        ):
            raise SessionExists(
                f"This home already has a session {session_id!r} at "
                f"{stored_before.url}, with other terms or another analyst."
            )
        entropy = self.entropy or secrets.token_bytes(32)
        stored = StoredSession(
            url=self._url,
            entropy=stored_before.entropy if stored_before else entropy.hex(),
            terms=terms.decode(),
            coordinator=institution.key,
            signature=sign_terms(institution, digest(terms)),
        )
        if stored_before is None:
            stored.save(self._home, session_id)
        try:
            status = self._analyst.put_session(
                session_id, drawn_terms.request.model_dump(mode="json")
            )
        except CoterieError as error:
            is_refused = error.problem.status < 500 and not isinstance(error, Timeout)
            if is_refused and stored_before is None:  # keep the id free for other terms
                with store_of(self._home).transaction() as database:
                    database.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
            raise
        if status.terms_digest != stored.terms_digest:
            raise AgreementMismatch(
                "The analyst's terms differ from those requested: it runs another "
                "release, or changed them."
            )
        stored.save(self._home, session_id)
        return self.session(session_id)

    def analyst_key(self, *, is_new: bool = False) -> str:
        """Fetch the analyst's public key.

        Raises GuardRefused if the key differs from the stored key, unless ``is_new``.
        """
        key = self._analyst.identity()
        pin_analyst(self._home, self._url, key, is_new=is_new)
        return key

    @property
    def trusted_institutions(self) -> TrustedInstitutions:
        """Return the institutions that this home trusts."""
        return TrustedInstitutions(self._home)

    def _load_institution(self) -> Institution:
        if self.entropy is not None:
            return Institution.derive(self.entropy)
        return OwnIdentity(self._home).load_or_create()

    def session(self, session_id: str) -> CoordinatedSession:
        """Return the session with this id, without a request to the analyst."""
        return CoordinatedSession(session_id, self._analyst, self._home)

    def sessions(
        self,
        limit: int | None = None,
        *,
        state: str = "",
        owner: str = "",
        since: datetime | None = None,
        before: datetime | None = None,
    ) -> list[SessionLine]:
        """Fetch a line for each session of this key, most recently changed first.

        limit: the maximum number of lines; by default all.
        state: ``open``, ``over`` or a single state; empty for all.
        owner: the id or label of a key, since administrators see the
            sessions of all owners; empty for all.
        since, before: bounds of the time of the last change; ``before`` is exclusive.

        Raises VersionMismatch if the analyst's release cannot filter sessions.
        """
        texts = {"state": state, "owner": owner}
        times = {"changed_since": since, "changed_before": before}
        filters = {name: text for name, text in texts.items() if text}
        filters |= {name: time.isoformat() for name, time in times.items() if time}
        lines: list[SessionLine] = []

        def fetch_page(after: str) -> SessionPage:
            return self._analyst.sessions(after, filters)

        for page in iterate_pages(fetch_page, "", "sessions"):
            if filters and any(line.waiting_since is None for line in page.sessions):
                raise VersionMismatch("This analyst's release cannot filter sessions.")
            lines += page.sessions
            if limit is not None and len(lines) >= limit:
                break
        return lines[:limit]
