"""`coterie audit`: the administrative log and the audits of all sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from analyst_service.cli.opening import current_database, read_settings

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Transaction

_FIRST = ("log", "id", "at", "event", "actor", "label", "number", "previous", "session")


class _Moment(click.ParamType[datetime]):
    """A time that a person writes."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        from analyst_service.clock import SystemClock
        from coterie_pages.moments import read_moment

        try:
            return read_moment(str(value), SystemClock().now())
        except ValueError as error:
            self.fail(f"{value!r}: {error}.", param, ctx)


@click.command()
@click.option(
    "--since",
    type=_Moment(),
    help="From then on: 2026-11-01, 2026-11-01T09:30, 3d, 12h.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each.")
def audit(since: datetime | None, *, as_json: bool) -> None:
    """Print who did what at this analyst, by time.

    It holds what administrators did, and all sessions. Every chain is checked from its
    first line. Where one is broken, the lines before that place are printed and the
    command fails.
    """
    from clustering_protocols.errors import AuditBroken

    broken: list[str] = []
    with current_database(read_settings()) as database, database.read() as transaction:
        entries = list(_entries(transaction, since, broken))
    for entry in sorted(entries, key=lambda each: str(each["at"])):
        click.echo(json.dumps(entry) if as_json else _line(entry))
    if broken:
        raise AuditBroken(" ".join(broken))


def _entries(
    transaction: Transaction, since: datetime | None, broken: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield what all logs say from a time on; add what is wrong to ``broken``."""
    from analyst_service.administration import AdministrationLog
    from analyst_service.audit import Audit
    from clustering_protocols import hash_chain
    from clustering_protocols.errors import AuditBroken

    def checked(log: dict[str, str], lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        try:
            for entry in hash_chain.read(lines):
                if since is None or datetime.fromisoformat(entry["at"]) >= since:
                    yield log | entry
        except AuditBroken as error:
            broken.append(f"{' '.join(log.values())}: {error.detail}")

    log = AdministrationLog(transaction)
    yield from checked({"log": "administration"}, log.lines())
    for session_id, lines in Audit(transaction).all():
        yield from checked({"log": "session", "id": session_id}, lines)


def _line(entry: dict[str, Any]) -> str:
    """Return an entry for people: when, where, what, by whom, and the rest."""
    place = entry.get("id", entry["log"])
    who = " ".join(entry[k] for k in ("actor", "label") if entry.get(k))
    rest = [f"{k}={v}" for k, v in entry.items() if k not in _FIRST]
    return "  ".join(
        filter(None, [entry["at"][:19], place, entry["event"], who, *rest])
    )
