"""Files of a backup for one recipient or more, in the form of age (age-encryption.org)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, Protocol

from analyst_service.backups import BackupFailed
from clustering_protocols.common.extras import require_extra

_SECRET: Final = "AGE-SECRET-KEY-"  # noqa: S105  how such a line begins
_MOST_BYTES: Final = 1 << 16


class Readable(Protocol):
    """Bytes that come in turn."""

    def read(self, size: int = -1, /) -> bytes:
        """Return some of the next bytes, and none at the end."""
        ...


class Encryption:
    """Encrypts files to recipients.

    recipients: public keys, ``age1…``, as ``age-keygen`` prints them.

    Raises BackupFailed if one is no such key.
    """

    def __init__(self, recipients: Sequence[str]) -> None:
        pyrage = _library()
        try:
            self._recipients = [
                pyrage.x25519.Recipient.from_str(text) for text in recipients
            ]
        except pyrage.RecipientError:
            raise BackupFailed(
                "A recipient is a public key that begins with age1: 'age-keygen' prints "
                "one."
            ) from None

    def write(self, source: Readable, target: IO[bytes]) -> None:
        """Write the encrypted bytes of a source."""
        _library().encrypt_io(source, target, self._recipients)


class Decryption:
    """Decrypts files with a recipient's key.

    file: the file that ``age-keygen`` wrote.

    Raises BackupFailed if it holds no key.
    """

    def __init__(self, file: Path) -> None:
        pyrage = _library()
        try:
            with file.open("rb") as opened:
                lines = opened.read(_MOST_BYTES).decode().split()
            self._keys = [
                pyrage.x25519.Identity.from_str(line)
                for line in lines
                if line.startswith(_SECRET)
            ]
        except (OSError, ValueError, pyrage.IdentityError):
            self._keys = []
        if not self._keys:
            raise BackupFailed(
                f"{file} holds no key of a recipient: give the file that 'age-keygen' "
                "wrote."
            )

    def write(self, source: Readable, target: IO[bytes]) -> None:
        """Write the decrypted bytes of a source.

        Raises BackupFailed if they were encrypted to others, or were changed.
        """
        pyrage = _library()
        try:
            pyrage.decrypt_io(source, target, self._keys)
        except (pyrage.DecryptError, OSError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # of the disk that it is written to
            raise BackupFailed(
                "The backup does not open with this key: it was encrypted to another "
                "recipient, or it was changed."
            ) from None


def _library() -> Any:
    require_extra("age", "Encrypted backups need pyrage", "pyrage")
    return import_module("pyrage")  # it has no types
