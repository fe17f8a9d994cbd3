"""What every command of an administrator opens: settings, the database, its folder.

Whatever is wrong with them is said in a sentence, without a password and without a
traceback.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from analyst_service.database import Database
    from analyst_service.settings import Settings
    from clustering_protocols.secrecy.identities import Institution

_PREFIX: Final = "COTERIE_"
_FORM: Final = "It has the form postgresql://user@host/name or sqlite:////path/to/file."


def read_settings() -> Settings:
    """Return the settings of the environment; say which names are near misses."""
    from pydantic import ValidationError

    from analyst_service.settings import Settings
    from clustering_protocols.explaining import in_words

    try:
        settings = Settings()
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        raise click.ClickException(
            " ".join(f"{_named(e['loc'])}{in_words(e)}." for e in found)
        ) from None
    for name, meant in misspelt(os.environ, Settings.model_fields):
        click.echo(f"Warning: {name} is no setting; did you mean {meant}?", err=True)
    return settings


def _named(place: tuple[int | str, ...]) -> str:
    """Return which variable a finding is of; nothing where it is of several."""
    return f"{variable(str(place[0]))}: " if place else ""


def variable(field: str) -> str:
    """Return the variable of a setting."""
    return f"{_PREFIX}{field.upper()}"


def misspelt(
    environment: Collection[str], fields: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield variables that are no setting but nearly one, and that one."""
    known = [variable(name) for name in fields]
    for name in sorted(environment):
        if name.startswith(_PREFIX) and name not in known:
            for meant in get_close_matches(name, known, 1, cutoff=0.88):
                yield name, meant


@contextmanager
def current_database(settings: Settings) -> Iterator[Database]:
    """Open the database for a while; it must have the schema of this release."""
    with any_database(settings) as database:
        check_schema(database, database.revision())
        if not database.is_current():
            raise click.ClickException(
                "The database has the schema of an older release. Stop the service, "
                "run 'coterie backup FOLDER', then 'coterie migrate'."
            )
        yield database


@contextmanager
def known_database(settings: Settings) -> Iterator[Database]:
    """Open the database for a while; this release or an older one made its schema."""
    with any_database(settings) as database:
        check_schema(database, database.revision())
        yield database


def check_schema(database: Database, revision: str | None) -> None:
    """Refuse a database without a schema, or with one that this release does not know."""
    from analyst_service.database import head

    if revision is None:
        raise click.ClickException(
            "The database has no schema yet. Run 'coterie migrate' first."
        )
    if not database.knows(revision):
        raise click.ClickException(
            f"The database has schema {revision} of a newer release; this one knows "
            f"none after {head()}. Install the newer release. To stay with this one, "
            "restore a backup that it wrote into an empty analyst ('coterie restore')."
        )


@contextmanager
def any_database(settings: Settings) -> Iterator[Database]:
    """Open the database for a while, whatever its schema."""
    from sqlalchemy import exc

    make_folder(settings)
    try:
        with closing(_opened(settings)) as database:
            yield database
    except exc.DatabaseError as error:
        if type(error) not in {exc.OperationalError, exc.DatabaseError}:
            raise  # a defect; the latter is a file that is no database
        raise click.ClickException(
            f"The database cannot be used: {_reason(error)} COTERIE_DATABASE_URL says "
            "where it is; by default it is a file in COTERIE_DATA_DIR."
        ) from None


def read_identity(settings: Settings) -> Institution:
    """Return the analyst's key, a new one on first use; refuse a file that holds none."""
    from analyst_service.identity import load_identity
    from clustering_protocols.errors import CoterieError

    try:
        return load_identity(settings.identity_path)
    except (CoterieError, OSError, ValueError):
        raise click.ClickException(
            f"The analyst's key in {settings.identity_path} cannot be read: put back what "
            "was there. COTERIE_IDENTITY_FILE says where it is."
        ) from None


def make_folder(settings: Settings) -> None:
    """Make the data folder, for this user alone."""
    os.umask(0o077)  # what lies here is for this user alone
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        settings.data_dir.chmod(0o700)
    except OSError as error:
        raise click.ClickException(
            f"The data folder {settings.data_dir} cannot be used: {error.strerror}. "
            "COTERIE_DATA_DIR says where it is."
        ) from None


def _opened(settings: Settings) -> Database:
    from sqlalchemy import exc

    from analyst_service.database import Database

    try:
        return Database(settings.database)
    except (exc.NoSuchModuleError, ModuleNotFoundError):
        raise click.ClickException(
            f"COTERIE_DATABASE_URL names a kind of database that is not served. {_FORM}"
        ) from None
    except (exc.ArgumentError, ValueError):
        raise click.ClickException(
            f"COTERIE_DATABASE_URL is no address of a database. {_FORM}"
        ) from None


def _reason(error: Exception) -> str:
    """Return the last line of what the driver says; it never says a password."""
    lines = str(getattr(error, "orig", error)).strip().splitlines() or ["no answer"]
    return f"{lines[-1].strip().rstrip('.')}."
