"""Context of the administrator's commands: settings, database, data folder.

Errors are reported in a sentence, without a password and without a traceback.
"""

from __future__ import annotations

import getpass
import logging
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from analyst_service.database import Database
    from analyst_service.installation import ForeignStore, Parts
    from analyst_service.logs import Actor
    from analyst_service.settings import Settings
    from clustering_protocols.secrecy.identities import Institution

_FORM: Final = "It has the form postgresql://user@host/name or sqlite:////path/to/file."


def read_settings() -> Settings:
    """Return the settings of the environment; warn about names that look misspelt."""
    from pydantic import ValidationError

    from analyst_service.secret_files import variable
    from analyst_service.settings import Settings
    from clustering_protocols.common.values import describe_finding
    from clustering_protocols.protocol_packages import use_packages

    try:
        settings = Settings()
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        raise click.ClickException(
            # an error about several settings has an empty ``loc``
            " ".join(
                "".join(f"{variable(str(name))}: " for name in error["loc"][:1])
                + f"{describe_finding(error)}."
                for error in problems
            )
        ) from None
    for warning in _warnings(Settings.model_fields):
        click.echo(f"Warning: {warning}", err=True)
    use_packages(lambda: settings.named_packages)
    return settings


def _warnings(fields: Mapping[str, FieldInfo]) -> Iterator[str]:
    """Yield warnings about misspelt variables and readable secrets."""
    from analyst_service.secret_files import (
        credential_files,
        file_variable,
        is_open_to_others,
        named_files,
        secret_fields,
        variable,
    )

    variables = [variable(name) for name in fields]
    variables += [file_variable(name) for name in secret_fields(fields)]
    for name, similar in misspelt(os.environ, variables):
        yield f"{name} is unknown; did you mean {similar}?"
    files = [
        (file_variable(name), path) for name, path in named_files(fields, os.environ)
    ]
    for name, path in [*files, *credential_files(os.environ)]:
        if is_open_to_others(path):
            yield (
                f"{name}: every account of this machine can read {path}. "
                "Let only its owner read it: chmod 0400."
            )


def misspelt(
    environment: Collection[str], variables: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield variables that name no setting, each with a setting of a similar name."""
    from analyst_service.secret_files import PREFIX

    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in variables:
            for similar in get_close_matches(name, variables, 1, cutoff=0.88):
                yield name, similar


@contextmanager
def current_database(settings: Settings) -> Iterator[Database]:
    """Open the database, which must have the schema of this release."""
    with any_database(settings) as database:
        check_schema(database, database.revision())
        if not database.is_current():
            raise click.ClickException(
                "The database has the schema of an older release. Stop the service, "
                "make a backup with that release, and run 'coterie migrate'."
            )
        yield database


def check_schema(database: Database, revision: str | None) -> None:
    """Refuse a database without a schema, or with one that this release does not know."""
    from coterie.build import find_schema

    if revision is None:
        raise click.ClickException(
            "The database has no schema yet. Run 'coterie migrate' first."
        )
    if database.knows(revision):
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
def any_database(settings: Settings) -> Iterator[Database]:
    """Open the database, whatever its schema."""
    from sqlalchemy import exc

    make_folder(settings)
    try:
        with log_acts_to_stderr(), closing(_open_database(settings)) as database:
            yield database
    except exc.DatabaseError as error:
        if type(error) not in {exc.OperationalError, exc.DatabaseError}:
            raise  # our bug; the base class itself means that the file is no database
        raise click.ClickException(
            f"The database cannot be used: {_reason(error)} COTERIE_DATABASE_URL says "
            "where it is; by default it is a file in COTERIE_DATA_DIR."
        ) from None


def read_identity(settings: Settings) -> Institution:
    """Return the analyst's key, a new one on first use; refuse a file without a key."""
    from analyst_service.identity import load_identity
    from clustering_protocols.common.errors import CoterieError

    try:
        return load_identity(settings.identity_path)
    except (CoterieError, OSError, ValueError):
        raise click.ClickException(
            f"The analyst's key in {settings.identity_path} cannot be read: restore the "
            "file. COTERIE_IDENTITY_FILE says where it is."
        ) from None


def open_parts(settings: Settings) -> Parts:
    """Open the analyst's key and arrays, and check that they belong to the database."""
    from analyst_service.installation import Parts
    from clustering_protocols.common.errors import Unavailable

    try:
        return Parts(read_identity(settings).key, settings.blob_place.open())
    except Unavailable as error:
        raise click.ClickException(error.detail) from None


def check_parts(settings: Settings, database: Database, parts: Parts) -> None:
    """Refuse a key or a store of arrays that belongs to another database."""
    from analyst_service.installation import ForeignKey, ForeignStore, check_parts
    from clustering_protocols.common.errors import CoterieError
    from clustering_protocols.secrecy.identities import fingerprint

    try:
        check_parts(database, parts)
    except ForeignKey as error:
        raise click.ClickException(
            f"The analyst's key in {settings.identity_path} is not the one of this "
            f"database. Expected: {fingerprint(error.expected)}. Found: "
            f"{fingerprint(error.actual)}. COTERIE_IDENTITY_FILE names its file: take "
            "identity.json of the other analysts, or of a backup. If the key was meant "
            "to change, run 'coterie config adopt key'."
        ) from None
    except ForeignStore as error:
        raise click.ClickException(foreign_store(settings, error)) from None
    except CoterieError as error:
        raise click.ClickException(error.detail) from None


def foreign_store(settings: Settings, error: ForeignStore) -> str:
    """Return the remedy for a store of arrays that belongs to another database."""
    variable = "COTERIE_BLOB_STORE" if settings.blob_store else "COTERIE_DATA_DIR"
    return (
        f"The store of arrays in {variable} is not the one of this database: "
        f"{error.reason}. Correct {variable}, or move all of the arrays there, with the "
        "file 'mark' beside them. If all arrays are there and only the mark is wrong, run "
        "'coterie config adopt store'."
    )


def operator() -> Actor:
    """Return the actor that the log names for a command: the login on this machine."""
    from analyst_service.logs import COMMAND, Actor

    try:
        return Actor(COMMAND, getpass.getuser())
    except (KeyError, OSError):  # a container's user has no name
        return Actor(COMMAND, f"uid {os.getuid()}")


@contextmanager
def log_acts_to_stderr() -> Iterator[None]:
    """Log a command's administrative acts to standard error, one line of JSON each.

    In a terminal nothing is logged, because commands report there in words.
    """
    if sys.stderr.isatty():
        yield
        return
    from analyst_service.logs import LOGGER, JsonLines

    log, handler = logging.getLogger(LOGGER), logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def make_folder(settings: Settings) -> None:
    """Make the data folder, which only this user may read."""
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


def _reason(error: Exception) -> str:
    """Return the last line of the driver's message, which holds no password."""
    lines = str(getattr(error, "orig", error)).strip().splitlines() or ["no answer"]
    return f"{lines[-1].strip().rstrip('.')}."
