"""Secrets from files: ``NAME_FILE`` may name a file that contains the secret ``NAME``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

CREDENTIAL_FILES: Final = (
    "AWS_ACCESS_KEY_ID_FILE",
    "AWS_SECRET_ACCESS_KEY_FILE",
    "AWS_SESSION_TOKEN_FILE",
)
"""The variables that may name files with the credentials of an object store."""

_MOST_BYTES: Final = 1 << 16


def read_secret(name: str, path: Path) -> str:
    """Return the only line of a variable's file; raise ValueError if there is none.

    The message names the file but does not quote it.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode().strip()
    except OSError as error:
        raise ValueError(
            f"{name}: the file {path} cannot be read ({error.strerror})"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{name}: the file {path} contains no text") from None
    if not text or not text.isprintable():
        raise ValueError(f"{name}: the file {path} must contain one line of text")
    return text
