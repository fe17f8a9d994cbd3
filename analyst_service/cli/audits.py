"""`coterie audit`: the administrative log and the audits of all sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analyst_service.cli.context import current_database, read_settings

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
        from coterie_pages.times import read_moment

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
@click.option(
    "--follow",
    "is_followed",
    is_flag=True,
    help="Go on: print each new line of the administrative log.",
)
@click.option(
    "--syslog",
    metavar="ADDRESS",
    help="With --follow: send lines there, /dev/log or HOST:PORT (TCP).",
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --follow: file of the last line that was handed on.",
)
def audit(
    since: datetime | None,
    syslog: str | None,
    state: Path | None,
    *,
    as_json: bool,
    is_followed: bool,
) -> None:
    """Print who did what at this analyst, by time.

    It holds what administrators did, and all sessions. Every chain is checked from its
    first line. If one is broken, the lines before that place are printed and the
    command fails.

    With --follow, the command forwards the administrative log alone, until you stop it.
    If the database or syslog fails, the command fails. Start it again with the same
    --state, and it continues after the last line.
    """
    if is_followed:
        _follow(since, syslog, state, as_json=as_json)
        return
    if syslog is not None or state is not None:
        raise click.UsageError("--syslog and --state belong to --follow.")
    _print_all(since, as_json=as_json)


def _follow(
    since: datetime | None, syslog: str | None, state: Path | None, *, as_json: bool
) -> None:
    from analyst_service.cli.log_export import PositionFile, follow
    from analyst_service.cli.syslog import Syslog

    def show(line: str, entry: Mapping[str, Any]) -> None:
        told = {"log": "administration", **entry}
        click.echo(line if as_json else _line(told))

    def hand_on(line: str, entry: Mapping[str, Any]) -> None:
        if since is None or datetime.fromisoformat(entry["at"]) >= since:
            send(line, entry)

    with current_database(read_settings()) as database, ExitStack() as opened:
        try:
            send = (
                show
                if syslog is None
                else opened.enter_context(closing(Syslog(syslog))).send
            )
            follow(database, PositionFile(state), hand_on)
        except OSError as error:
            raise click.ClickException(
                f"A line could not be handed on: {error.strerror}. Start the command "
                "again: --state lets it continue behind the last line."
            ) from None


def _print_all(since: datetime | None, *, as_json: bool) -> None:
    from clustering_protocols.common.errors import AuditBroken

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
    from analyst_service.transactions.administrative_log import AdministrationLog
    from analyst_service.transactions.audit import Audit
    from clustering_protocols.common.errors import AuditBroken
    from clustering_protocols.records import hash_chain

    def check_log(
        log: dict[str, str], lines: Iterable[str]
    ) -> Iterator[dict[str, Any]]:
        try:
            for entry in hash_chain.read(lines):
                if since is None or datetime.fromisoformat(entry["at"]) >= since:
                    yield log | entry
        except AuditBroken as error:
            broken.append(f"{' '.join(log.values())}: {error.detail}")

    log = AdministrationLog(transaction)
    yield from check_log({"log": "administration"}, log.lines())
    for session_id, lines in Audit(transaction).all():
        yield from check_log({"log": "session", "id": session_id}, lines)


def _line(entry: Mapping[str, Any]) -> str:
    """Return an entry for people: when, where, what, by whom, and the rest."""
    place = entry.get("id", entry["log"])
    who = " ".join(entry[k] for k in ("actor", "label") if entry.get(k))
    rest = [f"{k}={v}" for k, v in entry.items() if k not in _FIRST]
    return "  ".join(
        filter(None, [entry["at"][:19], place, entry["event"], who, *rest])
    )
