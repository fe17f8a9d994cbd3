"""`coterie config`, `coterie migrate`, `coterie backup` and `coterie restore`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from analyst_service.cli.context import (
    explain_wrong_store,
    open_current_database,
    open_database_of_any_schema,
    open_installation,
    open_key_and_store,
    operator,
    read_settings,
    require_known_schema,
)

if TYPE_CHECKING:
    from analyst_service.database import Database
    from analyst_service.settings import Settings

_SECRETS: Final = (
    re.compile(r"(?P<name>//[^:]*:).*(?=@)", re.DOTALL),  # //user:password@host
    re.compile(r"(?P<name>(?i:password|secret|token|key)[^=&?]*=)[^&]*"),
)


@click.group()
def config() -> None:
    """Check the analyst's settings and apply a changed key or storage location."""


@config.command("check")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_settings(*, as_json: bool) -> None:
    """Check the settings, and print their values and sources.

    Secrets are not shown. Variables that look misspelt are reported.
    """
    lines = list(_describe_settings(read_settings()))
    if as_json:
        click.echo(json.dumps(lines))
        return
    width = max(len(line["name"]) for line in lines)
    for line in lines:
        click.echo(f"{line['name']:{width}}  {line['source']:11}  {line['value']}")


@config.command("adopt")
@click.argument("part", type=click.Choice(["key", "store"]))
def adopt_part(part: str) -> None:
    """Record the configured key or blob store in the database.

    Use this after an intended change. Analysts with the previous key or store can then
    no longer start, and sessions that name the previous key end for their parties.
    """
    from analyst_service.installation import StoreMismatch, adopt_key, adopt_store
    from analyst_service.logs import Act, log_act
    from clustering_protocols.common.errors import CoterieError

    settings = read_settings()
    with open_current_database(settings) as database:
        institution, store = open_key_and_store(settings, database)
        try:
            if part == "key":
                adopt_key(database, institution.key)
            else:
                adopt_store(database, institution.key, store)
        except StoreMismatch as error:
            raise click.ClickException(explain_wrong_store(settings, error)) from None
        except CoterieError as error:
            raise click.ClickException(error.detail) from None
        log_act(Act.ADOPTED, operator(), part=part)
    click.echo(f"The database has adopted the configured {part}.", err=True)


def _describe_settings(settings: Settings) -> Iterator[dict[str, Any]]:
    from analyst_service.settings import find_secret_files, variable_name

    files = find_secret_files()
    for name, value in settings:
        if file := files.get(name):
            source, text = "file", str(file)
        else:
            is_set = name in settings.model_fields_set
            source, text = "environment" if is_set else "default", _mask_secrets(value)
        yield {"name": variable_name(name), "source": source, "value": text}


def _mask_secrets(value: Any) -> Any:
    """Return a setting's value for display: numbers as they are, texts without secrets."""
    if isinstance(value, int | float):
        return value
    text = "" if value is None else str(value)
    for secret in _SECRETS:
        text = secret.sub(r"\g<name>***", text)
    return text


@click.command()
def migrate() -> None:
    """Create the database's schema, or upgrade it to this release.

    Stop the service first. Open sessions that this release cannot continue are listed
    and ended; their parties can read the reason.
    """
    from analyst_service.logs import Act, log_act

    with open_database_of_any_schema(read_settings()) as database:
        before = database.schema_revision()
        if before is not None:
            require_known_schema(database, before)
        database.migrate()
        after = database.schema_revision()
        if before == after:
            click.echo(f"The schema is current: revision {after}.", err=True)
        elif before is None:
            click.echo(f"The schema was created: revision {after}.", err=True)
        else:
            log_act(Act.MIGRATED, operator(), before=before, after=after)
            click.echo(f"The schema was upgraded from {before} to {after}.", err=True)
        end_and_print_outdated_sessions(database)


def end_and_print_outdated_sessions(database: Database) -> None:
    """End the sessions that this release cannot continue, and print each of them."""
    from analyst_service.sessions import end_outdated_sessions

    ended = database.transact(end_outdated_sessions)
    for session, refusal in ended:
        click.echo(f"Ended: {session.id} ({session.state}). {refusal}", err=True)
    if ended:
        click.echo(
            f"{len(ended)} open sessions were ended, because this release cannot continue "
            "them. Their coordinators can open them again.",
            err=True,
        )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def backup(folder: Path) -> None:
    """Write the database, the blobs and the analyst's key into a new FOLDER.

    The service may keep running. Keep the folder as secret as the data folder.
    """
    from analyst_service.backups import back_up
    from analyst_service.logs import Act, log_act

    settings = read_settings()
    with (
        open_current_database(settings) as database,
        _explain_backup_errors(folder, "be written"),
    ):
        institution, store = open_installation(settings, database)
        n_blobs = back_up(database, store, institution, folder)
    log_act(Act.BACKUP_MADE, operator(), blobs=n_blobs)
    click.echo(f"Wrote a backup with {n_blobs} blobs to {folder}.", err=True)
    try:
        settings.backup_mark.touch()
    except OSError as error:
        click.echo(
            f"Warning: {settings.backup_mark} cannot be written ({error.strerror}): "
            "/metrics will not show this backup.",
            err=True,
        )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def restore(folder: Path) -> None:
    """Restore a backup from FOLDER into an empty installation.

    The database (COTERIE_DATABASE_URL) must be of the same kind as that of the backup
    and have no rows. The data folder (COTERIE_DATA_DIR) must be empty too. The schema
    is upgraded to this release. Start the service afterwards: sessions continue.
    """
    from analyst_service.backups import restore_backup
    from analyst_service.logs import Act, log_act

    settings = read_settings()
    with open_database_of_any_schema(settings) as database:
        with _explain_backup_errors(folder, "be restored"):
            backup = restore_backup(folder, database, settings)
        log_act(Act.RESTORED, operator())
        end_and_print_outdated_sessions(database)
    click.echo(f"Restored as of {backup.time:%Y-%m-%d %H:%M} UTC.", err=True)


@contextmanager
def _explain_backup_errors(folder: Path, verb: str) -> Iterator[None]:
    """Replace errors by messages without data, such as "FOLDER cannot be written"."""
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
            f"{folder} cannot {verb}: {error.strerror}{place}."
        ) from None
