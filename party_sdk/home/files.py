"""Private files and folders, readable by their owner only and written atomically."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Final

from clustering_protocols.common.errors import InvalidParameters, StorageFull
from party_sdk.home.disk_room import report_full_disk

_CONTENT: Final = "Keys and answers are kept there."


def default_home() -> Path:
    """Return the default home directory: ``$COTERIE_HOME`` if set, else ``~/.coterie``."""
    setting = os.environ.get("COTERIE_HOME")
    return Path(setting) if setting else Path.home() / ".coterie"


def create_private_folder(path: Path) -> Path:
    """Create a folder that only its owner may enter, along with any missing parents.

    Raises InvalidParameters if the folder cannot be created or used.
    """
    try:
        for folder in (*reversed(path.parents), path):
            if not folder.exists():
                folder.mkdir(exist_ok=True, mode=0o700)
        path.chmod(0o700)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "this is not a path"
        raise InvalidParameters(
            f"The folder {path} cannot be created or used: {why}."
        ) from None
    return path


def try_lock(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed.

    Returns False if another process locked it, or if its disk has no locks.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably, with mode 0600.

    Raises StorageFull if the disk is full; the old file then remains unchanged.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        with (
            report_full_disk(path.parent, _CONTENT),
            open(draft, "wb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file,
        ):
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except (OSError, StorageFull):
        draft.unlink(missing_ok=True)
        raise
    if os.name == "nt":  # Windows cannot open a folder to sync it
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_secret_variable(name: str) -> str:
    """Return the secret in the file that ``NAME_FILE`` names, or the value of ``NAME``.

    Raises InvalidParameters if the file cannot be read or is not text.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "")
    try:
        return Path(path).read_text().rstrip("\r\n")
    except (OSError, ValueError):
        raise InvalidParameters(
            f"{name}_FILE does not name a text file that can be read here."
        ) from None
