"""The schema of a database: its revision, and the way to another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import sqlalchemy as sa

from coterie.build import find_migrations, find_schema

if TYPE_CHECKING:
    from alembic.config import Config

# the table in which alembic keeps where a database stands
_REVISIONS = sa.table("alembic_version", sa.column("version_num", sa.String))


def alembic_config(on: sa.Engine | sa.Connection) -> Config:
    """Return what Alembic's commands take, to work on an engine or a connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(find_migrations()))
    config.attributes["on"] = on
    return config


def migrate(on: sa.Engine | sa.Connection, revision: str = "head") -> None:
    """Bring the schema to a revision, within the transaction of a connection."""
    from alembic import command  # a service that serves never loads it

    command.upgrade(alembic_config(on), revision)


def revision_of(connection: sa.Connection) -> str | None:
    """Return the revision of the schema that a connection sees; None without one."""
    if not sa.inspect(connection).has_table(_REVISIONS.name):
        return None
    return connection.scalar(sa.select(_REVISIONS.c.version_num))


@contextmanager
def changing_schema(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that may alter tables; it is committed at the end.

    SQLite drops and copies a table to which others point. Its foreign keys rest
    meanwhile, and are checked before the commit. It listens outside of transactions
    alone, so the driver is asked.
    """
    if engine.dialect.name != "sqlite":
        with engine.begin() as connection:
            yield connection
        return
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        if driver is None:
            raise AssertionError("a connection that was just opened")
        driver.execute("PRAGMA foreign_keys=OFF")
        try:
            with connection.begin():
                yield connection
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
                if broken:
                    raise BrokenLinks(f"{len(broken)} rows point to no row.")
        finally:
            driver.execute("PRAGMA foreign_keys=ON")


class BrokenLinks(Exception):
    """Rows point to rows that are not there."""


def head() -> str:
    """Return the revision that this release needs."""
    return find_schema()


def known_revisions() -> set[str]:
    """Return all that this release knows: files begin with them, and are in order."""
    files = (find_migrations() / "versions").glob("[0-9]*.py")
    return {path.name.partition("_")[0] for path in files}
