"""Authentication of the desk's visitor: one visit at a time, begun by a one-time link."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest, digest as hmac_digest
from pathlib import Path
from typing import Final

from clustering_protocols.common.errors import Unauthenticated
from party_sdk.desk.form_answers import FormAnswers
from party_sdk.home.clock import now
from party_sdk.home.store import store_of

LINK_LIFETIME: Final = timedelta(minutes=5)
_FORMS: Final = b"coterie/desk/form/1"

Clock = Callable[[], datetime]


class Openings:
    """One-time links that open the desk of a home, each valid for five minutes.

    The home's database stores the digest of the latest link, so that another process of
    the same user can create a link for a running desk.
    """

    def __init__(self, home: Path, clock: Clock = now) -> None:
        self._store, self._clock = store_of(home), clock

    def create_token(self) -> str:
        """Return a new token, which replaces the previous one."""
        token = secrets.token_urlsafe(32)
        until = self._clock() + LINK_LIFETIME
        with self._store.transaction() as database:
            database.execute("DELETE FROM desk_links")
            link = _digest(token), until.isoformat()
            database.execute("INSERT INTO desk_links VALUES (?, ?)", link)
        return token

    def consume_token(self, token: str) -> None:
        """Consume a token; raise :class:`Unauthenticated` if it is invalid or expired."""
        with self._store.transaction() as database:
            statement = "DELETE FROM desk_links WHERE digest = ? RETURNING until"
            rows = database.execute(statement, (_digest(token),)).fetchall()
        if not rows:
            raise Unauthenticated("It was used already, or a newer link replaced it.")
        if self._clock() > datetime.fromisoformat(rows[0]["until"]):
            raise Unauthenticated("It is older than five minutes.")


class Visits:
    """The current visit to the desk, if any; a new visit ends the previous one.

    answers: stored responses to the visit's forms, deleted when it ends.
    idle: time without requests from the user after which a visit ends.
    """

    def __init__(self, idle: timedelta, clock: Clock = now) -> None:
        self._idle, self._clock = idle, clock
        self._digest = ""
        self._last = clock()
        self.answers = FormAnswers()

    def begin(self) -> str:
        """Begin a visit and return its secret, of which only the digest is stored."""
        self.end()
        secret = secrets.token_urlsafe(32)
        self._digest, self._last = _digest(secret), self._clock()
        return secret

    def admit(self, secret: str, *, is_refresh: bool) -> str:
        """Validate a visit's secret and return its form token, an HMAC of the secret.

        is_refresh: True for an automatic refresh, which does not count as activity.

        Raises Unauthenticated if the visit is not current, or was idle for too long.
        """
        if not self._digest or not compare_digest(self._digest, _digest(secret)):
            raise Unauthenticated("This is not the current visit.")
        time = self._clock()
        if time - self._last > self._idle:
            self.end()
            raise Unauthenticated("The desk was idle for too long.")
        if not is_refresh:
            self._last = time
        return hmac_digest(secret.encode(), _FORMS, sha256).hex()

    def end(self) -> None:
        """End the visit, if there is one, and delete the stored responses to its forms."""
        self._digest = ""
        self.answers.clear()


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
