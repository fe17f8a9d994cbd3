"""Files that only their owner can read, written whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Final

from clustering_protocols.common.errors import InvalidParameters, StorageFull
from party_sdk.home.disk_room import report_full_disk

_CONTENT: Final = "Keys and answers are kept there."


def default_home() -> Path:
    """Return the home of coordinator and parties: $COTERIE_HOME, or ~/.coterie."""
    setting = os.environ.get("COTERIE_HOME")
    return Path(setting) if setting else Path.home() / ".coterie"


def private_folder(path: Path) -> Path:
    """Create a folder that only its owner may enter, and its missing parents likewise.

    Raises InvalidParameters if it cannot be created or used.
    """
    try:
        for folder in (*reversed(path.parents), path):
            if not folder.exists():
                folder.mkdir(exist_ok=True, mode=0o700)
        path.chmod(0o700)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "this is no path"
        raise InvalidParameters(
            f"The folder {path} cannot be created or used: {why}."
        ) from None
    return path


def lock(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed; False if another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably, with mode 0600.

    Raises StorageFull if there is no room; the file is then unchanged.
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
    except (OSError, StorageFull):
        draft.unlink(missing_ok=True)
        raise
    draft.replace(path)
    if os.name == "nt":  # Windows cannot open folders
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_secret_variable(name: str) -> str:
    """Return the text of the file that ``NAME_FILE`` names, or of the variable; or "".

    Raises InvalidParameters if the file cannot be read, or decoded as text.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "")
    try:
        return Path(path).read_text().rstrip("\r\n")
    except (OSError, ValueError):
        raise InvalidParameters(
            f"{name}_FILE does not name a text file that may be read here."
        ) from None
