"""The institution's own identity, and the identities of the institutions it trusts."""

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
    """The identity of the institution that owns this home, the same in all sessions."""

    def __init__(self, home: Path) -> None:
        self._home, self._store = home, store_of(home)

    @property
    def stored(self) -> Institution | None:
        """The stored identity, or None if none has been created yet."""
        row = self._store.fetch_row(
            "SELECT content FROM secrets WHERE name = 'institution'"
        )
        return Institution.read(row[0]) if row else None

    def load(self) -> Institution:
        """Return the stored identity. Raises NotReady if none has been created yet."""
        stored = self.stored
        if stored is None:
            raise NotReady(
                f"There is no identity in {self._home}: run coterie identity new."
            )
        return stored

    def load_or_create(self) -> Institution:
        """Return the stored identity; if there is none yet, create one without a name."""
        with self._store.transaction():
            return self.stored or self._save(Institution("", secrets.token_bytes(32)))

    def create(self, name: str, *, replace: bool = False) -> Institution:
        """Create and store a named identity.

        A stored identity without a name keeps its key. A stored identity with a name is
        replaced only if ``replace`` is true, because others may trust its card.

        Raises GuardRefused if ``replace`` is needed but false, or if a word of the name
            has letters of two scripts that look alike.
        Raises InvalidParameters if the name is empty, too long or has control characters.
        """
        try:
            TypeAdapter(InstitutionName).validate_python(name)
        except ValidationError:
            name = ""
        if not _fold_name(name):
            raise InvalidParameters("A name has 1 to 100 printable characters.")
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


def pin_analyst(home: Path, url: str, key: str, *, is_new: bool = False) -> None:
    """Remember an analyst's key on first use, and later compare it with that key.

    is_new: whether to accept and remember a changed key.

    Raises GuardRefused if the key has changed.
    """
    store = store_of(home)
    stored = store.fetch_row("SELECT key FROM analysts WHERE url = ?", url)
    if stored and stored[0] == key:
        return
    if stored and not is_new:
        raise GuardRefused(
            f"The analyst at {url} has the key {fingerprint(key)}; before, it had "
            f"{fingerprint(stored[0])}. Ask its administrator; if the key is correct, "
            "pass --new-analyst."
        )
    with store.transaction() as database:
        database.execute("INSERT OR REPLACE INTO analysts VALUES (?, ?)", (url, key))


class TrustedInstitutions:
    """The institutions whose cards this home trusts. Each name has exactly one key."""

    def __init__(self, home: Path) -> None:
        self._store = store_of(home)

    def keys_by_name(self) -> Mapping[str, str]:
        """Return a mapping from the name of each trusted institution to its public key."""
        statement = "SELECT name, key FROM trusted_institutions ORDER BY name"
        return dict(self._store.fetch_rows(statement))

    def names_by_key(self) -> dict[str, str]:
        """Return a mapping from each trusted public key to the institution's name."""
        return {key: name for name, key in self.keys_by_name().items()}

    def trust(self, card: Card) -> None:
        """Trust a card: store the institution's name and public key.

        Raises GuardRefused if the key is already trusted under another name, or the
        name (in any spelling) with another key. The old entry must be forgotten first.
        Raises GuardRefused if a word of the name has letters of two scripts.
        """
        _check_scripts(card.name)
        with self._store.transaction() as database:
            self.check_key(card.name, card.key)
            name = self.name_of(card.key)
            if name not in {None, card.name}:
                raise GuardRefused(f"This key is known here as that of {name!r}.")
            database.execute(
                "INSERT OR REPLACE INTO trusted_institutions VALUES (?, ?)",
                (card.name, card.key),
            )

    def forget(self, name: str) -> None:
        """Stop trusting an institution. Raises NotReady if the name is not trusted."""
        with self._store.transaction() as database:
            statement = "DELETE FROM trusted_institutions WHERE name = ?"
            if not database.execute(statement, (name,)).rowcount:
                raise NotReady(f"{name!r} is not known here.")

    def name_of(self, key: str) -> str | None:
        """Return the name under which a public key is trusted, or None if it is not."""
        return self.names_by_key().get(key)

    def check_key(self, name: str, key: str) -> None:
        """Raise GuardRefused if the name is trusted with a different key."""
        for trusted_name, trusted_key in self.keys_by_name().items():
            if _fold_name(trusted_name) == _fold_name(name) and trusted_key != key:
                raise GuardRefused(
                    f"{name!r} is known here with the key {fingerprint(trusted_key)}, and shows "
                    f"{fingerprint(key)}. Ask them over a channel that you trust; if the key "
                    "is new, run coterie identity trust --forget and trust the new card."
                )


def _fold_name(name: str) -> str:
    """Return a name in lower case, without blanks, invisible or variant characters."""
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
