"""Visits of the desk, one at a time, each begun by a link that works once."""

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
    """Links that open the desk of a home, each once and within five minutes.

    The home stores the digest of the last one, so that another process of the owner can
    make a link.
    """

    def __init__(self, home: Path, clock: Clock = now) -> None:
        self._store, self._clock = store_of(home), clock

    def make(self) -> str:
        """Return a new token; the earlier one becomes invalid."""
        token = secrets.token_urlsafe(32)
        until = self._clock() + LINK_LIFETIME
        with self._store.transaction() as database:
            database.execute("DELETE FROM desk_links")
            link = _digest(token), until.isoformat()
            database.execute("INSERT INTO desk_links VALUES (?, ?)", link)
        return token

    def take(self, token: str) -> None:
        """Use a token up; raise :class:`Unauthenticated` if it is invalid."""
        with self._store.transaction() as database:
            statement = "DELETE FROM desk_links WHERE digest = ? RETURNING until"
            rows = database.execute(statement, (_digest(token),)).fetchall()
        if not rows:
            raise Unauthenticated("It was used already, or a newer link replaced it.")
        if self._clock() > datetime.fromisoformat(rows[0]["until"]):
            raise Unauthenticated("It is older than five minutes.")


class Visits:
    """The current visit, if any; a new visit ends the previous one.

    answers: the responses to its forms, which are deleted with it.
    idle: time without requests after which a visit ends.
    """

    def __init__(self, idle: timedelta, clock: Clock = now) -> None:
        self._idle, self._clock = idle, clock
        self._digest = ""
        self._last = clock()
        self.answers = FormAnswers()

    def begin(self) -> str:
        """Return the secret of a new visit, which this process does not keep."""
        self.end()
        secret = secrets.token_urlsafe(32)
        self._digest, self._last = _digest(secret), self._clock()
        return secret

    def admit(self, secret: str, *, is_refresh: bool) -> str:
        """Return the token of a visit's forms, a one-way hash of the cookie's secret.

        is_refresh: whether the page refreshed itself, so that nobody need be there.

        Raises Unauthenticated if it is not the current visit, or was idle for too long.
        """
        if not self._digest or not compare_digest(self._digest, _digest(secret)):
            raise Unauthenticated("This is not the current visit.")
        time = self._clock()
        if time - self._last > self._idle:
            self.end()
            raise Unauthenticated("Nobody was here for too long.")
        if not is_refresh:
            self._last = time
        return hmac_digest(secret.encode(), _FORMS, sha256).hex()

    def end(self) -> None:
        """End the visit."""
        self._digest = ""
        self.answers.clear()


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
