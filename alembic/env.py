"""Runs the migrations on the engine that the caller passes, or on the settings'."""

from alembic import context
from sqlalchemy import Engine

from analyst_service.database import Database
from analyst_service.models import Base
from analyst_service.settings import Settings


def run(engine: Engine) -> None:
    """Migrate in one transaction; SQLite alters tables by copying them."""
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            render_as_batch=connection.dialect.name == "sqlite",
            compare_type=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()


given = context.config.attributes.get("engine")
run(given if isinstance(given, Engine) else Database(Settings().database).engine)
