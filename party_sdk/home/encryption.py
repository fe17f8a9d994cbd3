"""A home under a passphrase: of a stolen disk nobody reads keys, tokens or memory.

``seal.json`` in the home holds a random key, sealed under the passphrase (scrypt,
RFC 7914). Each secret file is sealed under that key (AES-256-GCM) and bound to its place
in the home; one that lies in clear is not believed. What is no secret stays readable:
whom the home knows (``known.json``, ``analysts.json``), what tables were spent
(``spent.json``), and each party's log of what left it (``sent.log``), which names
digests.

A home without ``seal.json`` keeps all of this in clear, for its owner's eyes (0600).
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from pydantic import BaseModel, Field

from clustering_protocols.common.errors import GuardRefused, NotReady
from clustering_protocols.common.extras import require_extra
from party_sdk.home.files import (
    lock_folder,
    overwrite_private,
    private_folder,
    read_secret_variable,
    write_private,
)

_MAGIC: Final = b"coterie-sealed-1\n"
_NONCE_BYTES: Final = 12
_SECRET: Final = (
    "identity.json",
    "intersected.json",
    "rows.key",
    "shown.arrays",
    "sums/*.arrays",
    "sessions/*.json",
    "parties/*/*/*.json",
    "parties/*/*/*.arrays",
    "parties/*/*/mapping-*.toml",
    "parties/*/*/forgotten/*/*.json",
)
_SERVICE: Final = "coterie"
# what the key is bound to, by whether all files are sealed
_SEAL_PLACES: Final = {True: b"seal.json", False: b"seal.json, unfinished"}


class _Seal(BaseModel):
    """How the key of a home is derived, and the key under it (hex)."""

    coterie_seal: Literal[1] = 1
    salt: str
    n: int = Field(default=1 << 17, ge=1 << 14, le=1 << 24)
    key: str
    is_complete: bool = True

    @classmethod
    def wrap_key(cls, key: bytes, passphrase: str, *, is_complete: bool) -> Self:
        """Return the seal of a key; whether all files are sealed is bound to it."""
        salt = secrets.token_hex(16)
        derived = _derive_from_passphrase(
            passphrase, salt, cls.model_fields["n"].default
        )
        wrapped = _seal_content(derived, key, _SEAL_PLACES[is_complete])
        return cls(salt=salt, key=wrapped.hex(), is_complete=is_complete)

    def opened_with(self, passphrase: str) -> bytes:
        """Return the key; :class:`GuardRefused` for another passphrase."""
        derived = _derive_from_passphrase(passphrase, self.salt, self.n)
        place = _SEAL_PLACES[self.is_complete]
        try:
            return _open(derived, bytes.fromhex(self.key), place)
        except InvalidTag:
            raise GuardRefused("The passphrase does not open this home.") from None


class SecretFiles:
    """Reads and writes the secret files of a home, sealed where the home is."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._seal = home / "seal.json"
        self._passphrase = ""

    @property
    def is_sealed(self) -> bool:
        """Return whether what is written here is sealed."""
        return self._seal.exists()

    def read(self, path: Path) -> bytes:
        """Return the content of a file of this home.

        Raises NotReady if the home is sealed and no passphrase is at hand.
        Raises GuardRefused if the passphrase is another one, or the file is not the one
            that was written at this place, or lies in clear where all files are sealed.
        """
        content = path.read_bytes()
        if not content.startswith(_MAGIC):
            self._check_clear(path)
            return content
        try:
            return _open(self._key(), content[len(_MAGIC) :], self._place(path))
        except InvalidTag:
            raise GuardRefused(f"{path.name} was changed, or moved here.") from None

    def write(self, path: Path, content: bytes) -> None:
        """Replace a file of this home in one step; see :func:`write_private`."""
        write_private(path, self._encode_file(path, content))

    def overwrite(self, path: Path, content: bytes) -> None:
        """Write a file of this home by one sync; see :func:`overwrite_private`."""
        overwrite_private(path, self._encode_file(path, content))

    def check_passphrase(self) -> None:
        """Raise what stands against reading sealed files here; nothing if all is well."""
        if self.is_sealed:
            self._key()

    def _encode_file(self, path: Path, content: bytes) -> bytes:
        if not self.is_sealed:
            return content
        return _MAGIC + _seal_content(self._key(), content, self._place(path))

    def seal(self, passphrase: str) -> int:
        """Seal all secret files under a passphrase; return how many there are.

        Sealing that was interrupted continues with the same passphrase.
        """
        if not self.is_sealed:
            private_folder(self._home)
            self._write_seal(secrets.token_bytes(32), passphrase, is_complete=False)
        self._passphrase = passphrase
        key = self._key()  # refuses another one before anything is written
        found = self._rewrite(self.write)
        if not self._kept_seal().is_complete:
            self._write_seal(key, passphrase, is_complete=True)
        return found

    def open(self) -> int:
        """Write all secret files in clear, and forget the key; return how many.

        What was interrupted continues when it is called again.
        """
        if not self.is_sealed:
            raise NotReady("This home is not sealed.")
        self._passphrase = self._passphrase or passphrase_for(self._home)
        self._write_seal(self._key(), self._passphrase, is_complete=False)
        found = self._rewrite(write_private)
        self._seal.unlink()
        return found

    def _rewrite(self, write: Callable[[Path, bytes], None]) -> int:
        """Write all secret files anew, while no party runs; return how many."""
        found = 0
        for folder in [self._home, *self._open_folders(), *self._parties()]:
            with lock_folder(folder):
                for path in self._secret(folder):
                    write(path, self.read(path))
                    found += 1
        return found

    def _write_seal(self, key: bytes, passphrase: str, *, is_complete: bool) -> None:
        seal = _Seal.wrap_key(key, passphrase, is_complete=is_complete)
        write_private(self._seal, seal.model_dump_json().encode())

    def _kept_seal(self) -> _Seal:
        return _Seal.model_validate_json(self._seal.read_bytes())

    def _check_clear(self, path: Path) -> None:
        """Refuse a file in clear, unless sealing is under way."""
        if self.is_sealed and self._kept_seal().is_complete:
            raise GuardRefused(
                f"{path.name} lies in clear, but this home is sealed: it was not written "
                "here. Put back the sealed file of a backup."
            )
        self.check_passphrase()

    def _open_folders(self) -> list[Path]:
        return [*self._home.glob("sessions"), *self._home.glob("sums")]

    def _parties(self) -> list[Path]:
        places = ("parties/*/*", "parties/*/*/forgotten/*")
        found = (each for place in places for each in self._home.glob(place))
        return [each for each in found if each.is_dir()]

    def _secret(self, folder: Path) -> list[Path]:
        files = (each for pattern in _SECRET for each in self._home.glob(pattern))
        return sorted(path for path in files if path.parent == folder)

    def _key(self) -> bytes:
        if not self.is_sealed:
            raise NotReady(f"{self._seal} is missing: without it nothing can be read.")
        passphrase = self._passphrase or passphrase_for(self._home)
        return _key(self._seal.read_bytes(), passphrase)

    def _place(self, path: Path) -> bytes:
        return path.relative_to(self._home).as_posix().encode()


def passphrase_for(home: Path) -> str:
    """Return the passphrase of a home.

    From the file that ``COTERIE_PASSPHRASE_FILE`` names, from ``COTERIE_PASSPHRASE``,
    from the system's keyring, or from the person at the terminal.

    Raises NotReady if there is none of them.
    """
    return passphrase_given() or _read_keyring(home) or _ask_passphrase(home)


def passphrase_given() -> str:
    """Return the passphrase that the environment gives; empty if it gives none."""
    return read_secret_variable("COTERIE_PASSPHRASE")


def remember(home: Path, passphrase: str) -> None:
    """Keep the passphrase of a home in the system's keyring."""
    require_extra("keyring", "The system's keyring is read by keyring", "keyring")
    import keyring

    keyring.set_password(_SERVICE, str(home.resolve()), passphrase)


@cache
def _read_keyring(home: Path) -> str:
    if find_spec("keyring") is None:
        return ""
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(_SERVICE, str(home.resolve())) or ""
    except KeyringError:  # none here, or locked
        return ""


@cache
def _ask_passphrase(home: Path) -> str:
    if not sys.stdin.isatty():
        raise NotReady(
            f"{home} is sealed: set COTERIE_PASSPHRASE_FILE or COTERIE_PASSPHRASE, or "
            "run it at a terminal."
        )
    from getpass import getpass

    return getpass(f"Passphrase of {home}: ")


@cache
def _key(seal: bytes, passphrase: str) -> bytes:
    """Return the key of a home; deriving it is slow, on purpose."""
    return _Seal.model_validate_json(seal).opened_with(passphrase)


def _derive_from_passphrase(passphrase: str, salt: str, n: int) -> bytes:
    kdf = Scrypt(salt=bytes.fromhex(salt), length=32, n=n, r=8, p=1)
    return kdf.derive(passphrase.encode())


def _seal_content(key: bytes, content: bytes, place: bytes) -> bytes:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, content, place)


def _open(key: bytes, sealed: bytes, place: bytes) -> bytes:
    nonce, content = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    return AESGCM(key).decrypt(nonce, content, place)
