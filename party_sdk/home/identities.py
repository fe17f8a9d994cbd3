"""Who this institution is, and whom it knows: three files in its home.

``identity.json`` holds the name and the private key, the same in all sessions.
``known.json`` holds the names and public keys of the cards that were trusted here; a
name that stands there is never given another key by anything that comes later.
``analysts.json`` holds the keys of the analysts at which sessions were opened.
"""

from __future__ import annotations

import json
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clustering_protocols.common.errors import GuardRefused, InvalidParameters, NotReady
from clustering_protocols.secrecy.identities import (
    Card,
    Institution,
    InstitutionName,
    Key,
    fingerprint,
)
from party_sdk.home.files import (
    private_folder,
    read_private,
    wait_for_lock,
    write_private,
)

_KNOWN = TypeAdapter(dict[InstitutionName, Key])
_KEYS = TypeAdapter(dict[str, Key])


def _read_mapping(form: TypeAdapter[dict[str, str]], path: Path) -> dict[str, str]:
    """Return what a file of the home holds; :class:`NotReady` if it was damaged."""
    try:
        return form.validate_json(path.read_bytes())
    except ValidationError:
        raise NotReady(f"{path} was changed: put back what was there.") from None


class OwnIdentity:
    """The identity of the institution whose home this is."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "identity.json"

    def load(self) -> Institution:
        """Return it; :class:`NotReady` where none was made."""
        if not self._path.exists():
            raise NotReady(
                f"There is no identity in {self._home}: coterie identity new."
            )
        return Institution.read(read_private(self._path))

    def load_or_make(self) -> Institution:
        """Return it; on first use a new one, which has no name yet."""
        with self._lock_creation():
            if not self._path.exists():
                self._save(Institution("", secrets.token_bytes(32)))
            return self.load()

    def make(self, name: str, *, replace: bool = False) -> Institution:
        """Return a new identity; one that has no name yet keeps its key and gets it.

        Raises GuardRefused if there is one with a name: others may have trusted its
            card. ``replace`` makes another all the same.
        Raises InvalidParameters if the name is empty, or holds what a terminal would
            obey.
        """
        _check_name(name)
        with self._lock_creation():
            seed = secrets.token_bytes(32)
            if self._path.exists() and not replace:
                known = self.load()
                if known.name:
                    raise GuardRefused(
                        f"This home is {known.name!r} already, {fingerprint(known.key)}; "
                        "who trusts its card would have to trust another: --replace."
                    )
                seed = known.key_bytes
            self._save(Institution(name, seed))
            return self.load()

    def _save(self, institution: Institution) -> None:
        write_private(self._path, institution.to_bytes())

    @contextmanager
    def _lock_creation(self) -> Iterator[None]:
        """Let one process at a time make an identity: none signs with one that is lost."""
        with wait_for_lock(self._home / "identity.lock"):
            yield


class KnownAnalysts:
    """The analysts at which sessions were opened from this home: a key per address."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "analysts.json"

    def check(self, url: str, key: str, *, is_new: bool = False) -> None:
        """Remember an analyst's key the first time.

        is_new: whether it is known that the analyst has another key now.

        Raises GuardRefused if the address showed another key before.
        """
        known = _read_mapping(_KEYS, self._path) if self._path.exists() else {}
        if known.get(url) == key:
            return
        if url in known and not is_new:
            raise GuardRefused(
                f"The analyst at {url} shows the key {fingerprint(key)}; before it was "
                f"{fingerprint(known[url])}. Ask its administrator; if it was set up "
                "anew: --new-analyst."
            )
        private_folder(self._home)
        write_private(self._path, _KEYS.dump_json({**known, url: key}, indent=2))


class Acquaintances:
    """The institutions whose cards were trusted in this home: a key per name."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "known.json"

    def read(self) -> Mapping[str, str]:
        """Return the public key of each name."""
        if not self._path.exists():
            return {}
        return _read_mapping(_KNOWN, self._path)

    def names(self) -> dict[str, str]:
        """Return whose each public key is."""
        return {key: name for name, key in self.read().items()}

    def trust(self, card: Card) -> None:
        """Remember whose key this is.

        Raises GuardRefused if the name, however it is written, or the key, is known
            with another partner: forget it first.
        """
        known = self.read()
        self.check(card.name, card.key)
        for name, key in known.items():
            if key == card.key and name != card.name:
                raise GuardRefused(f"This key is known here as that of {name!r}.")
        self._save({**known, card.name: card.key})

    def forget(self, name: str) -> None:
        """Trust a name no longer; :class:`NotReady` if it is not known."""
        known = dict(self.read())
        if known.pop(name, None) is None:
            raise NotReady(f"{name!r} is not known here.")
        self._save(known)

    def name_of(self, key: str) -> str | None:
        """Return whose key this is, if its card was trusted here."""
        return next((name for name, held in self.read().items() if held == key), None)

    def check(self, name: str, key: str) -> None:
        """Refuse somebody who gives the name of an institution that has another key."""
        for known, held in self.read().items():
            if _alike(known) == _alike(name) and held != key:
                raise GuardRefused(
                    f"{name!r} is known here with the key {fingerprint(held)}, and shows "
                    f"{fingerprint(key)}. Ask them, on a way that you know; if the key is "
                    "new, coterie identity trust --forget and trust the new card."
                )

    def _save(self, known: Mapping[str, str]) -> None:
        private_folder(self._home)
        written = json.dumps(known, indent=2, sort_keys=True, ensure_ascii=False)
        write_private(self._path, f"{written}\n".encode())


def _alike(name: str) -> str:
    """Return what two spellings of one name have in common."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", "".join(folded.split()))


def _check_name(name: str) -> None:
    try:
        TypeAdapter(InstitutionName).validate_python(name)
    except ValidationError:
        name = ""
    if not name.strip():
        raise InvalidParameters("A name has 1 to 100 characters that can be shown.")
