"""Migrations create and remove the tables of the models, on both databases."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from click.testing import Result

from analyst_service.credentials import Role, create_key
from analyst_service.database import Database, build_alembic_config
from analyst_service.models import Base, Session
from analyst_service.settings import Settings
from coterie.build import find_schema
from tests.service import samples


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    empty = Database(Settings(database_url=database_url).database)
    yield empty
    empty.close()


@pytest.fixture
def config(database: Database) -> Config:
    return build_alembic_config(database.engine)


def tables(database: Database) -> set[str]:
    return set(sa.inspect(database.engine).get_table_names()) - {"alembic_version"}


def test_migrations_and_models_describe_the_same_tables_and_lead_back(
    database: Database, config: Config
) -> None:
    assert find_schema() == ScriptDirectory.from_config(config).get_current_head()
    assert tables(database) == set()
    assert not database.has_current_schema()
    database.migrate()
    assert database.has_current_schema()
    assert tables(database) == set(Base.metadata.tables)
    command.check(config)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    command.downgrade(config, "base")
    assert tables(database) == set()


@pytest.mark.thorough
@pytest.mark.postgres
def test_replicas_may_migrate_one_database_at_once(postgres_url: str) -> None:
    with closing(Database(postgres_url)) as database:
        command.downgrade(build_alembic_config(database.engine), "base")
        migrate = "from analyst_service.database import *; Database({!r}).migrate()"
        words = [sys.executable, "-c", migrate.format(postgres_url)]
        replicas = [subprocess.Popen(words) for _ in range(3)]
        assert [replica.wait() for replica in replicas] == [0, 0, 0]
        assert database.has_current_schema()


# The administrator's commands


Run = Callable[..., Result]


@pytest.fixture
def run(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    monkeypatch.setattr(
        "analyst_service.cli.shutdown.run_server",
        lambda *_, **__: pytest.fail("it serves"),
    )
    place = Settings(data_dir=tmp_path / "data", database_url=database_url)
    return partial(samples.command, place)


OTHER_SCHEMAS = (
    ("9999", "schema 9999 of a newer release", "Install the newer release."),
    ("0009", "schema 0009 of a release before 0.3.0", "an empty database"),
)


def test_a_schema_that_this_release_does_not_serve_is_refused_with_the_remedy(
    run: Run, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = (("serve",), ("migrate",), ("backup", "monday"), ("key", "list"))
    for words in commands[2:]:
        refused = run(*words)
        assert (refused.exit_code, tables(database)) == (1, set())
        assert "no schema yet. Run 'coterie migrate'" in refused.output
    database.migrate()
    for revision, said, remedy in OTHER_SCHEMAS:
        with database.engine.begin() as connection:
            change = sa.text("UPDATE alembic_version SET version_num = :revision")
            connection.execute(change, {"revision": revision})
        for words in commands:
            refused = run(*words)
            assert refused.exit_code == 1
            assert said in refused.output
            assert remedy in refused.output
            assert "coterie migrate" not in refused.output, "that leads in a circle"
        assert database.schema_revision() == revision
        with database.engine.begin() as connection:
            connection.execute(change, {"revision": find_schema()})
    monkeypatch.setattr("analyst_service.database.find_schema", lambda: "9999")
    assert "run 'coterie migrate'" in run("serve").output, (
        "of a release before this one"
    )


def test_open_sessions_that_this_release_refuses_are_ended_and_named(
    run: Run, database: Database
) -> None:
    database.migrate()
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with database.write() as transaction:
        key_id, _ = create_key(transaction, Role.COORDINATOR, "k", 60)
        transaction.add(
            Session(
                id="s-old",
                name="s-old",
                owner_id=key_id,
                title="",
                terms=b'{"of": "another release"}',
                state="collecting",
                round=1,
                attempt=1,
                stage_index=0,
                n_stages=1,
                quorum=0,
                **dict.fromkeys(("deadline", "created_at", "changed_at"), now),
            )
        )
    done = run("migrate")
    assert done.exit_code == 0, done.output
    assert "Ended: s-old (collecting)." in done.output
    assert "1 open sessions were ended" in done.output
    with database.read() as transaction:
        session = transaction.get_one(Session, "s-old")
    assert (session.state, session.reason) == ("cancelled", "version-mismatch")
    again = run("migrate")
    assert f"The schema is current: revision {find_schema()}." in again.output
    assert "Ended" not in again.output
