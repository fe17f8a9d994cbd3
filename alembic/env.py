"""Runs the migrations on the engine that the caller passes, or on the settings'."""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import context
from sqlalchemy import Connection, Engine

from analyst_service.database import Database
from analyst_service.models import Base
from analyst_service.settings import Settings


def run(engine: Engine) -> None:
    """Migrate in one transaction; SQLite alters tables by copying them."""
    is_sqlite = engine.dialect.name == "sqlite"
    with engine.connect() as connection, _unlinked(connection):
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            render_as_batch=is_sqlite,
            compare_type=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        if is_sqlite:
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
            if broken:
                raise RuntimeError(f"{len(broken)} rows point to no row")
        connection.commit()


@contextmanager
def _unlinked(connection: Connection) -> Iterator[None]:
    """Let SQLite drop a table to which others point: its copy takes the name.

    It listens outside of transactions alone, so the driver is asked.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    driver = connection.connection.driver_connection
    driver.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        connection.rollback()
        driver.execute("PRAGMA foreign_keys=ON")


given = context.config.attributes.get("engine")
run(given if isinstance(given, Engine) else Database(Settings().database).engine)
