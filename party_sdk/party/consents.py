"""To which kinds of contribution a party's people have said yes, and since when."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import AwareDatetime, BaseModel, ConfigDict

from party_sdk.home.clock import now

if TYPE_CHECKING:
    from party_sdk.party.party_session import PartySession

WITHDRAWN = (
    "You took your consent back. What was sent stays sent; nothing more is sent until you "
    "are asked again and say yes. Until then the others wait for you, at most until the "
    "deadline of the round."
)
"""What follows once consent is withdrawn."""


class Consent(BaseModel):
    """A yes to all further contributions of one kind."""

    model_config = ConfigDict(frozen=True)

    kind: str
    meaning: str
    at: AwareDatetime


class Consents:
    """The consents of one party; read anew each time."""

    def __init__(self, party: PartySession) -> None:
        self._party, self._store = party, party.store

    @property
    def kinds(self) -> tuple[Consent, ...]:
        """Return every kind to which somebody said yes, in that order."""
        return tuple(
            Consent(kind=kind, meaning=meaning, at=datetime.fromisoformat(at))
            for kind, meaning, at in self._store.rows(
                "SELECT kind, meaning, at FROM consents WHERE party = ? ORDER BY rowid",
                self._party.id,
            )
        )

    @property
    def withdrawn_at(self) -> datetime | None:
        """Return when they were last withdrawn: everything is asked about since then."""
        return self._party.objections[1]

    def covers(self, kind: str) -> bool:
        """Return whether a kind needs no question any more."""
        return any(consent.kind == kind for consent in self.kinds)

    def give(self, kind: str, meaning: str) -> None:
        """Store a yes to all of a kind."""
        with self._store.transaction() as database:
            database.execute(
                "INSERT INTO consents VALUES (?, ?, ?, ?)",
                (self._party.id_in(database), kind, meaning, now().isoformat()),
            )

    def withdraw(self) -> None:
        """Take every yes back: from now on each kind is asked about again."""
        with self._store.transaction() as database:
            party = self._party.id_in(database)
            database.execute("DELETE FROM consents WHERE party = ?", (party,))
            database.execute(
                "UPDATE parties SET consents_withdrawn_at = ? WHERE id = ?",
                (now().isoformat(), party),
            )
