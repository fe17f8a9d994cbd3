"""The institution's identity, and the institutions that it trusts."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from clustering_protocols.common.errors import GuardRefused, InvalidParameters, NotReady
from clustering_protocols.secrecy.identities import (
    Card,
    Institution,
    InstitutionName,
    fingerprint,
)
from party_sdk.home.store import store_of

_INVISIBLE: Final = re.compile(
    r"[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's Default_Ignorable_Code_Point, and the blank Braille pattern."""
_LOOK_ALIKES: Final = frozenset({"LATIN", "CYRILLIC", "GREEK"})


class OwnIdentity:
    """The identity of the institution whose home this is: the same in all sessions."""

    def __init__(self, home: Path) -> None:
        self._home, self._store = home, store_of(home)

    @property
    def stored(self) -> Institution | None:
        """Return the identity; None if there is none yet."""
        row = self._store.row("SELECT content FROM secrets WHERE name = 'institution'")
        return Institution.read(row[0]) if row else None

    def load(self) -> Institution:
        """Return the identity, or raise NotReady if there is none yet."""
        stored = self.stored
        if stored is None:
            raise NotReady(
                f"There is no identity in {self._home}: coterie identity new."
            )
        return stored

    def load_or_make(self) -> Institution:
        """Return the identity; on first use, create one without a name."""
        with self._store.transaction():
            return self.stored or self._save(Institution("", secrets.token_bytes(32)))

    def make(self, name: str, *, replace: bool = False) -> Institution:
        """Create an identity; an existing one without a name keeps its key.

        Raises GuardRefused if a named identity exists, whose card others may trust,
            unless ``replace``; or if a word of the name has letters of two scripts.
        Raises InvalidParameters if the name is empty or has control characters.
        """
        try:
            TypeAdapter(InstitutionName).validate_python(name)
        except ValidationError:
            name = ""
        if not _fold(name):
            raise InvalidParameters("A name has 1 to 100 characters that can be shown.")
        _check_scripts(name)
        with self._store.transaction():
            before = None if replace else self.stored
            if before is not None and before.name:
                raise GuardRefused(
                    f"This home is already {before.name!r}, {fingerprint(before.key)}; "
                    "everyone who trusts its card must then trust the new one: --replace."
                )
            seed = secrets.token_bytes(32) if before is None else before.key_bytes
            return self._save(Institution(name, seed))

    def _save(self, institution: Institution) -> Institution:
        with self._store.transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO secrets VALUES ('institution', ?)",
                (institution.to_bytes(),),
            )
        return institution


def check_analyst(home: Path, url: str, key: str, *, is_new: bool = False) -> None:
    """Remember the key of an analyst the first time that a session is opened there.

    Raises GuardRefused if the address showed another key before.
    """
    store = store_of(home)
    stored = store.row("SELECT key FROM analysts WHERE url = ?", url)
    if stored and stored[0] == key:
        return
    if stored and not is_new:
        raise GuardRefused(
            f"The analyst at {url} shows the key {fingerprint(key)}; before it was "
            f"{fingerprint(stored[0])}. Ask its administrator; if the key is correct: "
            "--new-analyst."
        )
    with store.transaction() as database:
        database.execute("INSERT OR REPLACE INTO analysts VALUES (?, ?)", (url, key))


class TrustedInstitutions:
    """The institutions whose cards are trusted in this home, with one key per name."""

    def __init__(self, home: Path) -> None:
        self._store = store_of(home)

    def read(self) -> Mapping[str, str]:
        """Return the public key of each name."""
        statement = "SELECT name, key FROM trusted_institutions ORDER BY name"
        return dict(self._store.rows(statement))

    def names(self) -> dict[str, str]:
        """Return the name for each public key."""
        return {key: name for name, key in self.read().items()}

    def trust(self, card: Card) -> None:
        """Store name and key of a card.

        Raises GuardRefused if the key has another name, or the name (in any spelling)
            another key, which must be forgotten first.
        Raises GuardRefused if a word of the name has letters of two scripts.
        """
        _check_scripts(card.name)
        with self._store.transaction() as database:
            self.check(card.name, card.key)
            name = self.name_of(card.key)
            if name not in {None, card.name}:
                raise GuardRefused(f"This key is known here as that of {name!r}.")
            database.execute(
                "INSERT OR REPLACE INTO trusted_institutions VALUES (?, ?)",
                (card.name, card.key),
            )

    def forget(self, name: str) -> None:
        """Remove a trusted name, or raise NotReady if it is not known."""
        with self._store.transaction() as database:
            statement = "DELETE FROM trusted_institutions WHERE name = ?"
            if not database.execute(statement, (name,)).rowcount:
                raise NotReady(f"{name!r} is not known here.")

    def name_of(self, key: str) -> str | None:
        """Return the name of a key whose card is trusted here, or None."""
        return self.names().get(key)

    def check(self, name: str, key: str) -> None:
        """Refuse a known name with another key."""
        for trusted_name, trusted_key in self.read().items():
            if _fold(trusted_name) == _fold(name) and trusted_key != key:
                raise GuardRefused(
                    f"{name!r} is known here with the key {fingerprint(trusted_key)}, and shows "
                    f"{fingerprint(key)}. Ask them over a channel that you trust; if the key "
                    "is new, run coterie identity trust --forget and trust the new card."
                )


def _fold(name: str) -> str:
    """Return a name without blanks, invisible characters, case and variants."""
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", name)).casefold()
    return unicodedata.normalize("NFKC", "".join(folded.split()))


def _check_scripts(name: str) -> None:
    """Refuse a word with letters of two scripts that look alike."""
    for word in re.split(r"[\s-]+", _INVISIBLE.sub("", name)):
        scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in word}
        if len(scripts & _LOOK_ALIKES) > 1:
            raise GuardRefused(
                f"A word of {name!r} has letters of two scripts that look alike, so that the "
                "name may imitate another: the institution has to write it in one script."
            )
