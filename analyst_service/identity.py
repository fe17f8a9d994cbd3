"""The analyst's identity: the key that signs receipts and audits.

The terms of sessions name this key, so it must not change. All processes of an analyst,
on all hosts, read it from one file (``COTERIE_IDENTITY_FILE``), and backups contain it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from clustering_protocols.secrecy.identities import Institution


def load_or_create_identity(path: Path) -> Institution:
    """Return the analyst's identity, and create it if the file does not exist.

    If several processes start at the same time, all of them get the same identity.
    """
    if not path.exists():
        write_identity(path, Institution("", secrets.token_bytes(32)))
    return read_identity(path)


def read_identity(path: Path) -> Institution:
    """Read an identity from a file; raise :class:`Malformed` if the file contains none."""
    return Institution.read(path.read_bytes())


def write_identity(path: Path, institution: Institution) -> None:
    """Write an identity to a file that only its owner can read, unless the file exists."""
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
        pass  # another process has written it first
    except OSError:  # no hard links on this file system: the last process wins
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
