"""The analyst's identity: the key that signs receipts and audits.

Terms name the key, so it never changes: all processes of one analyst, on all hosts, read
the same file (``COTERIE_IDENTITY_FILE``), and a backup contains it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from clustering_protocols.secrecy.identities import Institution


def load_identity(path: Path) -> Institution:
    """Return the analyst's identity, which is made if the file does not exist.

    Processes that start at the same time all get the one that was written first.
    """
    if not path.exists():
        write_identity(path, Institution("", secrets.token_bytes(32)))
    return read_identity(path)


def read_identity(path: Path) -> Institution:
    """Return the identity in a file; raise :class:`Malformed` if there is none in it."""
    return Institution.read(path.read_bytes())


def write_identity(path: Path, institution: Institution) -> None:
    """Write an identity into a file for this user alone, unless the file exists."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(institution.to_bytes())
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(draft)
    except FileExistsError:
        pass  # another process was faster
    except OSError:  # a file system without hard links: the last process wins
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
