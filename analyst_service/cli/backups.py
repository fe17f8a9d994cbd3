"""`coterie backup` and `coterie restore`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from analyst_service.cli.context import (
    any_database,
    check_parts,
    current_database,
    open_parts,
    operator,
    read_identity,
    read_settings,
)
from analyst_service.cli.migrations import end_outdated_sessions


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def backup(folder: Path) -> None:
    """Write database, blobs and the analyst's key into a new FOLDER.

    The service may work on meanwhile. Keep the folder as secret as the data folder.
    """
    from analyst_service.backups import back_up
    from analyst_service.monitoring.administrative_acts import Act, log_act

    settings = read_settings()
    with current_database(settings) as database, _in_sentences(folder, "be written"):
        parts = open_parts(settings)
        check_parts(settings, database, parts)
        n_blobs = back_up(database, parts.store, read_identity(settings), folder)
    log_act(Act.BACKUP_MADE, operator(), blobs=n_blobs)
    click.echo(f"A backup with {n_blobs} blobs in {folder}.", err=True)
    try:
        settings.backup_mark.touch()
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

    That is an empty database of the same kind and an empty data folder:
    COTERIE_DATABASE_URL and COTERIE_DATA_DIR say where they are. The schema is brought up
    to this release. Start the service afterwards: sessions continue.
    """
    from analyst_service.backups import restore as bring_back
    from analyst_service.monitoring.administrative_acts import Act, log_act

    settings = read_settings()
    with any_database(settings) as database:
        with _in_sentences(folder, "be restored"):
            said = bring_back(folder, database, settings)
        log_act(Act.RESTORED, operator())
        database.migrate()
        end_outdated_sessions(database)
    click.echo(f"Restored as of {said.time:%Y-%m-%d %H:%M} UTC.", err=True)


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
