"""Runs the migrations on the given connection or engine, or on the settings' database."""

from alembic import context
from sqlalchemy import Connection, Engine

from analyst_service.database import Database, begin_schema_change
from analyst_service.models import Base
from analyst_service.settings import Settings


def run(connection: Connection) -> None:
    """Migrate in the connection's transaction; on SQLite, alter tables by copying them."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


bind = context.config.attributes.get("on")
if isinstance(bind, Connection):
    run(bind)
else:
    engine = bind if isinstance(bind, Engine) else Database(Settings().database).engine
    with begin_schema_change(engine) as connection:
        run(connection)
