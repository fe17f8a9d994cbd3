"""`coterie migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyst_service.cli.context import (
    any_database,
    check_schema,
    operator,
    read_settings,
)

if TYPE_CHECKING:
    from analyst_service.storage.database import Database


@click.command()
def migrate() -> None:
    """Create the database's schema, or bring it up to this release.

    Stop the service before. Open sessions that this release cannot continue with are
    listed and ended; their parties read the reason.
    """
    from analyst_service.monitoring.administrative_acts import Act, log_act

    with any_database(read_settings()) as database:
        before = database.revision()
        if before is not None:
            check_schema(database, before)
        database.migrate()
        after = database.revision()
        if before == after:
            click.echo(f"The schema is current: revision {after}.", err=True)
        elif before is None:
            click.echo(f"The schema was created: revision {after}.", err=True)
        else:
            log_act(Act.MIGRATED, operator(), before=before, after=after)
            click.echo(f"The schema went from revision {before} to {after}.", err=True)
        end_outdated_sessions(database)


def end_outdated_sessions(database: Database) -> None:
    """End the sessions that this release cannot continue with, and say which."""
    from analyst_service.clock import SystemClock
    from analyst_service.sessions.service import end_outdated

    ended = database.transact(lambda unit: end_outdated(unit, SystemClock()))
    for session in ended:
        click.echo(
            f"Ended: {session.session_id} ({session.state}). {session.reason}", err=True
        )
    if ended:
        click.echo(
            f"{len(ended)} open sessions were ended: this release cannot continue with "
            "them. Their coordinators open them anew.",
            err=True,
        )
