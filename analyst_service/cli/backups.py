"""`coterie backup` and `coterie restore`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from analyst_service.cli.acting import note
from analyst_service.cli.migrating import end_outdated_sessions
from analyst_service.cli.opening import any_database, known_database, read_settings


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def backup(folder: Path) -> None:
    """Write database, blobs and the analyst's key into a new FOLDER.

    The service may work on meanwhile. A database of an older release is copied as it
    is: nothing in it changes. Keep the folder as secret as the data folder.
    """
    from analyst_service.administration import Act
    from analyst_service.backup import BackupFailed, back_up
    from analyst_service.backup_mark import note_backup
    from analyst_service.clock import SystemClock

    settings, clock = read_settings(), SystemClock()
    with known_database(settings) as database:
        try:
            n_blobs = back_up(database, settings, folder, _show, clock)
        except BackupFailed as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            raise click.ClickException(
                f"{folder} cannot be written: {error.strerror}."
            ) from None
        note(database, Act.BACKUP_MADE, blobs=n_blobs)
    click.echo(f"A backup with {n_blobs} blobs in {folder}.", err=True)
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
def restore(folder: Path) -> None:
    """Bring a backup from FOLDER into an empty analyst.

    That is an empty database and an empty data folder: COTERIE_DATABASE_URL and
    COTERIE_DATA_DIR say where they are. The kind of database may be another than it
    was. Start the service afterwards: sessions go on.
    """
    from analyst_service.administration import Act
    from analyst_service.backup import BackupFailed, restore as bring_back

    settings = read_settings()
    with any_database(settings) as database:
        try:
            n_blobs = bring_back(database, settings, folder, _show)
        except BackupFailed as error:
            raise click.ClickException(str(error)) from None
        end_outdated_sessions(database)
        note(database, Act.RESTORED, blobs=n_blobs)
    click.echo(f"Restored, with {n_blobs} blobs.", err=True)


def _show(done: int, total: int) -> None:
    """Say how many blobs are copied, in a terminal: a log needs no such lines."""
    if sys.stderr.isatty() and (done % 100 == 0 or done == total):
        click.echo(f"\r{done} of {total} blobs", nl=done == total, err=True)
