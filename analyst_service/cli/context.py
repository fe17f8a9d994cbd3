"""Open the settings, database, key and data folder for the administrator's commands.

Errors are reported in one sentence, without passwords or a traceback.
"""

from __future__ import annotations

import getpass
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from analyst_service.blobs import FileBlobStore
    from analyst_service.database import Database
    from analyst_service.installation import StoreMismatch
    from analyst_service.logs import Actor
    from analyst_service.settings import Settings
    from clustering_protocols.secrecy.identities import Institution

_FORM: Final = "It has the form postgresql://user@host/name or sqlite:////path/to/file."


def read_settings() -> Settings:
    """Read the settings from the environment, and warn about misspelt variables."""
    from pydantic import ValidationError

    from analyst_service.settings import Settings, variable_name
    from clustering_protocols.common.values import (
        describe_finding,
        suggest_similar_name,
    )
    from clustering_protocols.protocol_packages import (
        find_module,
        find_modules,
        use_packages,
    )

    try:
        settings = Settings()
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        raise click.ClickException(
            # ``loc`` is empty if the error concerns several settings
            " ".join(
                "".join(f"{variable_name(str(name))}: " for name in error["loc"][:1])
                + f"{describe_finding(error)}."
                for error in problems
            )
        ) from None
    for warning in _find_warnings():
        click.echo(f"Warning: {warning}", err=True)
    use_packages(lambda: settings.protocol_package_names)
    for name in settings.hidden_protocol_names:
        if find_module(name) is None:
            raise click.ClickException(
                f"COTERIE_HIDDEN_PROTOCOLS names {name!r}, which is not a protocol "
                f"here.{suggest_similar_name(name, find_modules())}"
            )
    return settings


def _find_warnings() -> Iterator[str]:
    """Yield warnings about misspelt variables and about secrets that others can read."""
    from analyst_service.secret_files import CREDENTIAL_FILES
    from analyst_service.settings import (
        PREFIX,
        SECRET_SETTINGS,
        Settings,
        file_variable_name,
        variable_name,
    )

    secret_files = list(map(file_variable_name, SECRET_SETTINGS))
    variables = [*map(variable_name, Settings.model_fields), *secret_files]
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in variables:
            for similar in get_close_matches(name, variables, 1, cutoff=0.88):
                yield f"{name} is unknown; did you mean {similar}?"
    for name in (*secret_files, *CREDENTIAL_FILES):
        path = Path(os.environ.get(name, ""))
        if path.is_file() and path.stat().st_mode & stat.S_IROTH:
            yield (
                f"{name}: every account on this machine can read {path}. "
                "Let only its owner read it: chmod 0400."
            )


@contextmanager
def open_current_database(settings: Settings) -> Iterator[Database]:
    """Open the database, and require that it has the schema of this release."""
    with open_database_of_any_schema(settings) as database:
        require_known_schema(database, database.schema_revision())
        if not database.has_current_schema():
            raise click.ClickException(
                "The database has the schema of an older release. Stop the service, "
                "make a backup with that release, and run 'coterie migrate'."
            )
        yield database


def require_known_schema(database: Database, revision: str | None) -> None:
    """Raise ClickException if the database has no schema, or one that is not supported."""
    from coterie.build import find_schema

    if revision is None:
        raise click.ClickException(
            "The database has no schema yet. Run 'coterie migrate' first."
        )
    if database.knows_revision(revision):
        return
    if revision < find_schema():
        raise click.ClickException(
            f"The database has schema {revision} of a release before 0.3.0, which later "
            "releases do not read. Start with an empty database and data folder; the "
            "release that wrote the old database still reads it."
        )
    raise click.ClickException(
        f"The database has schema {revision} of a newer release; this release knows "
        f"none after {find_schema()}. Install the newer release. To keep this release, "
        "restore a backup that it wrote into an empty analyst ('coterie restore')."
    )


@contextmanager
def open_database_of_any_schema(settings: Settings) -> Iterator[Database]:
    """Open the database without checking which schema it has."""
    from sqlalchemy import exc

    create_data_folder(settings)
    try:
        with log_acts_to_stderr(), closing(_open_database(settings)) as database:
            yield database
    except exc.DatabaseError as error:
        if type(error) not in {exc.OperationalError, exc.DatabaseError}:
            raise  # our own bug; the exact base class means that the file is not a database
        raise click.ClickException(
            f"The database cannot be used: {_driver_message(error)} COTERIE_DATABASE_URL sets "
            "its location; by default it is a file in COTERIE_DATA_DIR."
        ) from None


def load_identity(settings: Settings) -> Institution:
    """Load the analyst's key, or create it on first use; raise if its file has no key."""
    from analyst_service.identity import load_or_create_identity
    from clustering_protocols.common.errors import CoterieError

    try:
        return load_or_create_identity(settings.identity_path)
    except (CoterieError, OSError, ValueError):
        raise click.ClickException(
            f"The analyst's key in {settings.identity_path} cannot be read: restore the "
            "file. COTERIE_IDENTITY_FILE says where it is."
        ) from None


def open_key_and_store(
    settings: Settings, database: Database
) -> tuple[Institution, FileBlobStore]:
    """Load the analyst's key and open its blob store; raise if the key's file was lost."""
    from analyst_service.installation import has_recorded_installation
    from clustering_protocols.common.errors import Unavailable

    if not settings.identity_path.exists() and has_recorded_installation(database):
        raise click.ClickException(
            f"The analyst's key {settings.identity_path} is missing. Restore identity.json "
            "from a backup, or copy it from another analyst of this database. "
            "COTERIE_IDENTITY_FILE says where it is."
        )
    try:
        return load_identity(settings), settings.blob_location.open()
    except Unavailable as error:
        raise click.ClickException(error.detail) from None


def open_installation(
    settings: Settings, database: Database
) -> tuple[Institution, FileBlobStore]:
    """Open the key and the blob store; refuse those that belong to another database."""
    from analyst_service.installation import (
        KeyMismatch,
        StoreMismatch,
        check_installation,
    )
    from clustering_protocols.common.errors import CoterieError
    from clustering_protocols.secrecy.identities import fingerprint

    institution, store = open_key_and_store(settings, database)
    try:
        check_installation(database, institution.key, store)
    except KeyMismatch as error:
        raise click.ClickException(
            f"The analyst's key in {settings.identity_path} does not belong to this "
            f"database. Expected: {fingerprint(error.expected)}. Found: "
            f"{fingerprint(error.actual)}. COTERIE_IDENTITY_FILE names its file: use "
            "identity.json of the other analysts, or of a backup. If the key was meant "
            "to change, run 'coterie config adopt key'."
        ) from None
    except StoreMismatch as error:
        raise click.ClickException(explain_wrong_store(settings, error)) from None
    except CoterieError as error:
        raise click.ClickException(error.detail) from None
    return institution, store


def explain_wrong_store(settings: Settings, error: StoreMismatch) -> str:
    """Return an error message that says how to correct the location of the blob store."""
    variable = "COTERIE_BLOB_STORE" if settings.blob_store else "COTERIE_DATA_DIR"
    return (
        f"The store of arrays in {variable} does not belong to this database: {error}. "
        f"Correct {variable}, or move all of the arrays there, with the file 'mark' "
        "next to them. If all arrays are there and only the mark is wrong, run "
        "'coterie config adopt store'."
    )


def operator() -> Actor:
    """Return the actor to be logged for a command: the current login on this machine."""
    from analyst_service.logs import COMMAND, Actor

    try:
        return Actor(COMMAND, getpass.getuser())
    except (KeyError, OSError):  # a user in a container may have no name
        return Actor(COMMAND, f"uid {os.getuid()}")


@contextmanager
def log_acts_to_stderr() -> Iterator[None]:
    """Log administrative acts to standard error while the block runs, as lines of JSON.

    Nothing is logged in a terminal, because the commands themselves report there.
    """
    if sys.stderr.isatty():
        yield
        return
    from analyst_service.logs import LOGGER, JsonFormatter

    log, handler = logging.getLogger(LOGGER), logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def create_data_folder(settings: Settings) -> None:
    """Create the data folder, which only the current user can read."""
    os.umask(0o077)
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        settings.data_dir.chmod(0o700)
    except OSError as error:
        raise click.ClickException(
            f"The data folder {settings.data_dir} cannot be used: {error.strerror}. "
            "COTERIE_DATA_DIR names it."
        ) from None


def _open_database(settings: Settings) -> Database:
    from sqlalchemy import exc

    from analyst_service.database import Database

    try:
        return Database(settings.database)
    except (exc.NoSuchModuleError, ModuleNotFoundError):
        raise click.ClickException(
            f"COTERIE_DATABASE_URL names a kind of database that is not supported. {_FORM}"
        ) from None
    except (exc.ArgumentError, ValueError):
        raise click.ClickException(
            f"COTERIE_DATABASE_URL is not the URL of a database. {_FORM}"
        ) from None


def _driver_message(error: Exception) -> str:
    """Return the first line of the driver's error message, which contains no password."""
    lines = str(getattr(error, "orig", error)).strip().splitlines() or ["no answer"]
    return f"{lines[0].strip().rstrip('.')}."
