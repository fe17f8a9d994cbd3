"""Visits: a key is exchanged for a cookie of some hours, which ends with the key.

A visit that nobody uses ends before. Its row holds when: it is put off by each use.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest, digest as hmac_digest
from typing import Final

from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import (
    AuthService,
    Caller,
    CredentialRefused,
    Role,
    caller_of,
    digest_of,
)
from analyst_service.clock import Clock
from analyst_service.configuration.settings import Settings
from analyst_service.dashboard.repository import VisitRepository
from analyst_service.storage.models import BrowserVisit
from analyst_service.transactions.administrative_log import (
    Act,
    Actor,
    AdministrationLog,
)
from clustering_protocols.common.errors import Forbidden, NotFound, Unauthenticated

_FORMS = b"coterie/form/1"
_ID_SIGNS: Final = 16
_MOST_SLACK: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at a page.

    caller: whose key it is.
    label: for whom the key was made.
    token: what the forms of this visit send back: it follows from the cookie, which no
        script can read, and the cookie does not follow from it.
    visit_id: names the visit among others, and opens nothing.
    is_due: whether its end has to be put off, for somebody uses it.
    """

    caller: Caller
    label: str
    token: str
    visit_id: str
    is_due: bool

    @property
    def actor(self) -> Actor:
        """Return whom the administrative log names."""
        return Actor(self.caller.principal_id or "", self.label)

    def check(self, token: str) -> None:
        """Raise :class:`Forbidden` unless a form is one of this visit's own."""
        if not compare_digest(token.encode(), self.token.encode()):
            raise Forbidden("The form is not one of this visit.")


def visit_id(visit: BrowserVisit) -> str:
    """Return what names a visit; its cookie does not follow from it."""
    return visit.secret_digest[:_ID_SIGNS]


class VisitService:
    """Visits in one transaction."""

    def __init__(
        self, transaction: Transaction, clock: Clock, settings: Settings
    ) -> None:
        self._visits = VisitRepository(transaction)
        self._auth = AuthService(transaction, clock)
        self._log = AdministrationLog(transaction)
        self._clock = clock
        self._whole = timedelta(seconds=settings.visit_seconds)
        self._idle = timedelta(seconds=settings.visit_idle_seconds)

    def begin(self, key: str, last: str = "") -> str:
        """Return the secret of a new visit; the one before it in this browser ends.

        Raises CredentialRefused if the key is none, or a party's token.
        """
        caller = self._auth.authenticate(f"Bearer {key}")
        if caller.role is Role.PARTY:
            raise CredentialRefused(caller.credential_id)
        now = self._clock.now()
        self._visits.remove_ended(now)
        self.end(last)
        secret = secrets.token_urlsafe(32)
        visit = BrowserVisit(
            secret_digest=digest_of(secret),
            credential_id=caller.credential_id,
            created_at=now,
            expires_at=self._end(now, now),
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
        caller = caller_of(found.credential, found.principal.role, now)
        end = self._end(found.visit.created_at, now)
        return Visitor(
            caller,
            found.credential.label,
            hmac_digest(secret.encode(), _FORMS, sha256).hex(),
            visit_id=visit_id(found.visit),
            # written now and then: most requests only read
            is_due=abs(end - found.visit.expires_at)
            >= min(self._idle / 10, _MOST_SLACK),
        )

    def put_off(self, secret: str) -> None:
        """Let a visit that continues end later, for somebody uses it."""
        now = self._clock.now()
        if (found := self._visits.find(digest_of(secret), now)) is not None:
            found.visit.expires_at = self._end(found.visit.created_at, now)

    def own(self, caller: Caller) -> Sequence[BrowserVisit]:
        """Return the visits of a caller that continue, the newest first."""
        return self._visits.own(caller.principal_id, self._clock.now())

    def end_own(self, caller: Caller, wanted: str) -> None:
        """End a visit of a caller; :class:`NotFound` if none that continues has this id."""
        ended = [each for each in self.own(caller) if visit_id(each) == wanted]
        if not ended:
            raise NotFound("No visit of yours has this id: it may have ended.")
        for each in ended:
            self._visits.remove(each.secret_digest)

    def _end(self, began: datetime, used: datetime) -> datetime:
        return min(began + self._whole, used + self._idle)

    def end(self, secret: str) -> None:
        """End a visit; a repeat changes nothing."""
        if secret:
            self._visits.remove(digest_of(secret))
