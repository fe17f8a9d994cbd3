"""Backups of an analyst in this process, and restores into another place."""

from __future__ import annotations

import json
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from support.in_process import Api

from analyst_service.backups.backup import Source, back_up
from analyst_service.backups.folder import Folder
from analyst_service.backups.manifest import read_backup
from analyst_service.backups.restoration import RestoreSummary, Target, restore
from analyst_service.clock import SystemClock
from analyst_service.identity import load_identity
from analyst_service.monitoring.administrative_acts import Actor
from analyst_service.settings import Settings
from analyst_service.storage.database import Database
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.secrecy.identities import Institution


def quiet(done: int, total: int) -> None:
    assert done <= total


def backed_up(api: Api, copy: Path, **options: Any) -> int:
    """Write a backup of a service that works on; return how many blobs it has."""
    settings = api.service.settings
    with closing(Database(settings.database)) as database:
        source = Source(
            database=database,
            blobs=settings.blob_place.open(),
            institution=load_identity(settings.identity_path),
            clock=SystemClock(),
        )
        return back_up(source, copy, quiet, **options)


def brought_back(copy: Path, settings: Settings) -> RestoreSummary:
    """Restore what the caller trusts."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    with closing(Database(settings.database)) as database:
        target = Target(
            database=database,
            settings=settings,
            actor=Actor("command", "tests"),
            clock=SystemClock(),
        )
        backup = read_backup(Folder(copy, None, settings.data_dir))
        return restore(backup, target, quiet)


def sign_again(copy: Path, signer: Institution, **changes: Any) -> None:
    """Have a backup's manifest say what lies there now, under somebody's signature."""
    manifest = json.loads((copy / "manifest.json").read_text()) | {"key": signer.key}
    for name, table in manifest["tables"].items():
        file = copy / "tables" / f"{name}.jsonl"
        if file.is_file():
            content = file.read_bytes()
            table |= {
                "rows": len(content.splitlines()),
                "digest": sha256(content).hexdigest(),
            }
    if (copy / "identity.json").is_file():
        key = (copy / "identity.json").read_bytes()
        manifest["identity"] = sha256(key).hexdigest()
    content = json.dumps(manifest | changes).encode()
    (copy / "manifest.json").write_bytes(content)
    signature = signer.sign(length_prefixed("coterie/backup/2", content))
    (copy / "manifest.sig").write_text(signature)
