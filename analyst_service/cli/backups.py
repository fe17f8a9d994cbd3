"""`coterie backup` and `coterie restore`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from analyst_service.cli.context import (
    any_database,
    check_parts,
    known_database,
    open_parts,
    operator,
    read_identity,
    read_settings,
)
from analyst_service.cli.migrations import tell_ended

if TYPE_CHECKING:
    from analyst_service.backups.manifest import Backup
    from analyst_service.settings import Settings

_KEY: Final = re.compile(r"[0-9a-f]{64}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--recipient",
    "recipients",
    multiple=True,
    metavar="age1…",
    help="Encrypt the files to this public key, as age-keygen prints it; may be repeated.",
)
@click.option(
    "--without-key",
    is_flag=True,
    help="Leave out the analyst's private key, which you keep elsewhere.",
)
def backup(folder: Path, recipients: tuple[str, ...], *, without_key: bool) -> None:
    """Write database, blobs and key into a new FOLDER, signed.

    The service may work on meanwhile. A database of an older release is copied as it
    is: nothing in it changes. Keep the folder as secret as the data folder, and the
    fingerprint that is printed apart from it: 'coterie restore' asks for it.
    """
    from analyst_service.backups.backup import Source, back_up
    from analyst_service.backups.encryption import Encryption
    from analyst_service.clock import SystemClock
    from analyst_service.monitoring.administrative_acts import Act, log_act
    from analyst_service.monitoring.last_backup import note_backup
    from clustering_protocols.secrecy.identities import fingerprint

    settings, clock = read_settings(), SystemClock()
    with known_database(settings) as database:
        institution, parts = read_identity(settings), open_parts(settings)
        if database.is_current():
            check_parts(settings, database, parts)
        source = Source(
            database=database, blobs=parts.store, institution=institution, clock=clock
        )
        with _in_sentences(folder, "be written"):
            encryption = Encryption(recipients) if recipients else None
            n_blobs = back_up(
                source, folder, _show, encryption, with_key=not without_key
            )
        log_act(Act.BACKUP_MADE, operator(), blobs=n_blobs)
    click.echo(f"A backup with {n_blobs} blobs in {folder}.", err=True)
    click.echo(f"Signed with the key {fingerprint(institution.key)}.", err=True)
    try:
        note_backup(settings, clock.now())
    except OSError as error:
        click.echo(
            f"Warning: {settings.backup_mark} cannot be written ({error.strerror}): "
            "/metrics will not know of this backup.",
            err=True,
        )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--fingerprint",
    help="Key of the analyst that signed the backup, as 'coterie backup' printed it.",
)
@click.option(
    "--decryption-key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of a recipient's key, for an encrypted backup.",
)
@click.option(
    "--allow",
    type=click.Choice(["unsigned"]),
    multiple=True,
    help="unsigned: a backup of an older release, which nobody signed.",
)
def restore(
    folder: Path,
    fingerprint: str | None,
    decryption_key: Path | None,
    allow: tuple[str, ...],
) -> None:
    """Bring a backup from FOLDER into an empty analyst.

    That is an empty database and an empty data folder: COTERIE_DATABASE_URL and
    COTERIE_DATA_DIR say where they are. The kind of database may be another than it
    was. A key of the analyst that lies there already has to be the backup's. Start the
    service afterwards: sessions continue.
    """
    from analyst_service.backups.encryption import Decryption
    from analyst_service.backups.folder import Folder, is_encrypted
    from analyst_service.backups.manifest import read_backup
    from analyst_service.backups.restoration import Target, restore as bring_back
    from analyst_service.clock import SystemClock

    settings = read_settings()
    with any_database(settings) as database, _in_sentences(folder, "be restored"):
        if is_encrypted(folder) and decryption_key is None:
            raise click.UsageError(
                "This backup is encrypted: give --decryption-key with the file that "
                "'age-keygen' wrote."
            )
        decryption = Decryption(decryption_key) if decryption_key else None
        found = read_backup(Folder(folder, decryption, settings.data_dir))
        _check_signer(found, settings, fingerprint, allow)
        target = Target(
            database=database, settings=settings, actor=operator(), clock=SystemClock()
        )
        done = bring_back(found, target, _show)
    tell_ended(done.ended)
    at = f"{found.time:%Y-%m-%d %H:%M} UTC"
    click.echo(f"Restored as of {at}, with {done.n_blobs} blobs.", err=True)


def _check_signer(
    found: Backup, settings: Settings, given: str | None, allow: tuple[str, ...]
) -> None:
    """Refuse a backup that was not signed by the analyst whom the operator expects."""
    from clustering_protocols.secrecy.identities import fingerprint as as_groups

    if found.signer is None:
        if "unsigned" in allow:
            return
        raise click.ClickException(
            f"Nobody signed this backup of release {found.release}: anyone who could write "
            "to it may have changed it. If you are sure of where it was kept, add "
            "--allow unsigned."
        )
    expected = _as_key(given) if given else None
    if expected is None and settings.identity_path.exists():
        expected = read_identity(settings).key
    shown = as_groups(found.signer)
    if expected is None:
        _ask(shown, found)
    elif expected != found.signer:
        raise click.ClickException(
            f"Another analyst signed this backup: its key is {shown}. It is not used."
        )


def _as_key(text: str) -> str:
    key = re.sub(r"[\s:]", "", text).lower()
    if _KEY.fullmatch(key) is None:
        raise click.UsageError(
            "A fingerprint has 64 hex digits, in groups or not: 'coterie backup' prints "
            "it, and 'coterie key identity' on the analyst's machine."
        )
    return key


def _ask(shown: str, found: Backup) -> None:
    """Let a person compare the fingerprint; a program has to know it."""
    if not is_terminal():
        raise click.ClickException(
            "Whose backup is this? Give the fingerprint of the analyst's key: "
            "--fingerprint. 'coterie backup' printed it; parties find it in the terms of "
            "their sessions."
        )
    click.echo(f"Signed on {found.time:%Y-%m-%d %H:%M} UTC with the key", err=True)
    click.echo(f"  {shown}", err=True)
    question = "Is that the fingerprint that you kept of your analyst?"
    click.confirm(question, abort=True, err=True)


def is_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty()


@contextmanager
def _in_sentences(folder: Path, what: str) -> Iterator[None]:
    """Say in a sentence what goes wrong with a backup: no row is in it."""
    from analyst_service.backups import BackupFailed
    from clustering_protocols.common.errors import StorageFull, Unavailable

    try:
        yield
    except BackupFailed as error:
        raise click.ClickException(str(error)) from None
    except (StorageFull, Unavailable) as error:
        raise click.ClickException(error.detail) from None
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise click.ClickException(
            f"{folder} cannot {what}: {error.strerror}{place}."
        ) from None


def _show(done: int, total: int) -> None:
    """Say how many blobs are copied, in a terminal: a log needs no such lines."""
    if sys.stderr.isatty() and (done % 100 == 0 or done == total):
        click.echo(f"\r{done} of {total} blobs", nl=done == total, err=True)
