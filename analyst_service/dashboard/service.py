"""Visits: a key is exchanged for a cookie of some hours, which ends with the key."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from hmac import compare_digest, digest as hmac_digest

from sqlalchemy.orm import Session as Transaction

from analyst_service.administration import Act, Actor, AdministrationLog
from analyst_service.auth.service import AuthService, Caller, Role, caller_of, digest_of
from analyst_service.clock import Clock
from analyst_service.dashboard.repository import VisitRepository
from analyst_service.models import BrowserVisit
from clustering_protocols.errors import Forbidden, Unauthenticated

_FORMS = b"coterie/form/1"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at a page.

    caller: whose key it is.
    label: for whom the key was made.
    token: what the forms of this visit send back: it follows from the cookie, which no
        script can read, and the cookie does not follow from it.
    """

    caller: Caller
    label: str
    token: str

    @property
    def actor(self) -> Actor:
        """Return whom the administrative log names."""
        return Actor(self.caller.principal_id or "", self.label)

    def check(self, token: str) -> None:
        """Raise :class:`Forbidden` unless a form is one of this visit's own."""
        if not compare_digest(token.encode(), self.token.encode()):
            raise Forbidden("The form is not one of this visit.")


class VisitService:
    """Visits in one transaction."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._visits = VisitRepository(transaction)
        self._auth = AuthService(transaction, clock)
        self._log = AdministrationLog(transaction)
        self._clock = clock

    def begin(self, key: str, seconds: int, last: str = "") -> str:
        """Return the secret of a new visit; the one before it in this browser ends.

        Raises
        ------
        Unauthenticated, Forbidden
            If the key is none, or a party's token.
        """
        caller = self._auth.authenticate(f"Bearer {key}")
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        now = self._clock.now()
        self._visits.remove_ended(now)
        self.end(last)
        secret = secrets.token_urlsafe(32)
        visit = BrowserVisit(
            secret_digest=digest_of(secret),
            credential_id=caller.credential_id,
            created_at=now,
            expires_at=now + timedelta(seconds=seconds),
        )
        self._visits.add(visit)
        actor = self._auth.actor(caller)
        self._log.append(Act.SIGNED_IN, actor, now, key=caller.credential_id)
        return secret

    def visitor(self, secret: str) -> Visitor:
        """Return who visits; :class:`Unauthenticated` if visit or key has ended."""
        now = self._clock.now()
        found = self._visits.find(digest_of(secret), now) if secret else None
        if found is None:
            raise Unauthenticated("This visit has ended.")
        credential, principal = found
        caller = caller_of(credential, principal.role, now)
        token = hmac_digest(secret.encode(), _FORMS, sha256).hex()
        return Visitor(caller, credential.label, token)

    def end(self, secret: str) -> None:
        """End a visit; a repeat changes nothing."""
        if secret:
            self._visits.remove(digest_of(secret))
