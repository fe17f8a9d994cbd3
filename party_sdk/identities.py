"""Who this institution is, and whom it knows: two files in its home.

``identity.json`` holds the name and the private key, the same in all sessions.
``known.json`` holds the names and public keys of the cards that were trusted here; a
name that stands there is never given another key by anything that comes later.
"""

from __future__ import annotations

import fcntl
import json
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from clustering_protocols.errors import GuardRefused, InvalidParameters, NotReady
from clustering_protocols.secrecy.identities import (
    Card,
    Institution,
    InstitutionName,
    Key,
    fingerprint,
)
from party_sdk._files import private_folder, write_private

_KNOWN = TypeAdapter(dict[InstitutionName, Key])


class _Kept(BaseModel):
    name: InstitutionName
    seed: str

    def __repr__(self) -> str:
        return "<Kept>"

    __str__ = __repr__


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
        kept = _Kept.model_validate_json(self._path.read_bytes())
        return Institution(kept.name, bytes.fromhex(kept.seed))

    def load_or_make(self) -> Institution:
        """Return it; on first use a new one, which has no name yet."""
        with self._locked():
            if not self._path.exists():
                self._save(Institution("", secrets.token_bytes(32)))
            return self.load()

    def make(self, name: str, *, replace: bool = False) -> Institution:
        """Return a new identity; one that has no name yet keeps its key and gets it.

        Raises
        ------
        GuardRefused
            If there is one with a name: others may have trusted its card. ``replace``
            makes another all the same.
        InvalidParameters
            If the name is empty, or holds what a terminal would obey.
        """
        _check_name(name)
        with self._locked():
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
        kept = _Kept(name=institution.name, seed=institution.key_bytes.hex())
        write_private(self._path, kept.model_dump_json().encode())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time make an identity: none signs with one that is lost."""
        with (private_folder(self._home) / "identity.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class Acquaintances:
    """The institutions whose cards were trusted in this home: a key per name."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "known.json"

    def read(self) -> Mapping[str, str]:
        """Return the public key of each name."""
        if not self._path.exists():
            return {}
        return _KNOWN.validate_json(self._path.read_bytes())

    def trust(self, card: Card) -> None:
        """Remember whose key this is.

        Raises
        ------
        GuardRefused
            If the name, however it is written, or the key, is known with another
            partner: forget it first.
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
