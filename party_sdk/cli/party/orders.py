"""`coterie party order, serve, answer, withdraw`: parties that run in the background."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.common import home_option
from party_sdk.cli.options.completion import (
    optional_slot_argument,
    session_argument,
    slot_argument,
)
from party_sdk.cli.options.invitation import invited_argument
from party_sdk.cli.options.policy import choice_option
from party_sdk.cli.options.tables import GivenTable, data_options
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.session.notify import notify_option
from party_sdk.cli.terminal.confirmation import consent_lines
from party_sdk.cli.terminal.output import say
from party_sdk.cli.terminal.output_files import force_option
from party_sdk.home.files import default_home

if TYPE_CHECKING:
    from party_sdk.application.home import Home
    from party_sdk.supervisor import OrderedTable, PendingQuestion


@click.command()
@invited_argument
@optional_slot_argument
@data_options
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="Where to write the labels (CSV, Parquet or Excel, by its ending).",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the report of your run, as one HTML file.",
)
@force_option
@choice_option
@click.option(
    "--confirm",
    is_flag=True,
    help="Each kind of contribution waits for your yes (party answer), once.",
)
@notify_option("your turn")
@here_options()
def order(
    session: str,
    slot: str | None,
    rows: GivenTable,
    labels: Path | None,
    report: Path | None,
    choices: Mapping[str, Any],
    addresses: tuple[str, ...],
    here: Home,
    *,
    force: bool,
    confirm: bool,
) -> None:
    """Let 'party serve' take part for you.

    SESSION is your invitation (@FILE, or - for standard input), or the id of a session
    whose invitation is here already, with SLOT.
    """
    from party_sdk.supervisor import Order, Orders
    from party_sdk.supervisor.files import OrderFiles

    invitation = session
    if "#" not in session:
        if slot is None:
            raise click.UsageError("Name the slot beside the session.")
        invitation = OrderFiles(here.path, session, slot).order().invitation
    placed = Orders(here.path).place(
        Order(
            invitation=invitation,
            table=_to_ordered_table(rows),
            choices=dict(choices),
            labels=None if labels is None else labels.absolute(),
            report=None if report is None else report.absolute(),
            confirm=confirm,
            notify=addresses,
            force=force,
        )
    )
    say(f"{placed.session} {placed.slot}: {placed.state.value}")
    if not _is_served(here.path):
        say("Nothing runs in the background here yet: coterie party serve", err=True)


@click.command()
@click.option(
    "--inbox",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder: each file *.invitation in it is taken and becomes an order. Which "
    "table it gets stands in policy.toml ([[orders]]); otherwise it waits for you.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="How many parties run at a time.",
)
@home_option
def serve(inbox: Path | None, parallel: int, home: Path | None) -> None:
    """Run this home's orders, until it is stopped.

    What your policy covers runs by itself; the rest waits for you (party list, party
    answer). Started again, it continues with everything that has not ended.
    """
    from party_sdk.supervisor import Supervisor

    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    supervisor = Supervisor(
        home or default_home(),
        parallel,
        inbox,
        lambda line: say(line, err=True),
    )
    say("Waiting for orders. Ctrl-C stops; nothing is lost by that.", err=True)
    supervisor.run(stop)


@click.command()
@session_argument
@slot_argument
@click.option("--yes/--no", "yes", default=None, help="Decide without being asked.")
@click.option(
    "--once",
    is_flag=True,
    help="With --yes: this contribution alone, not the rest of its kind.",
)
@click.option("--reason", default="", help="A line for the others, or for yourself.")
@here_options()
def answer(
    session_id: str,
    slot: str,
    here: Home,
    *,
    yes: bool | None,
    once: bool,
    reason: str,
) -> None:
    """Read, and decide, what a background party asks.

    Without --yes or --no it is only shown; where nothing is asked, why the order failed
    or waits. A no stands: the party stops, and where its slot is free the others read
    the reason.
    """
    from party_sdk.supervisor import Orders

    orders = Orders(here.path)
    asked = orders.question(session_id, slot)
    if asked is None:
        say("Nothing is asked of you here.")
        trouble = orders.status(session_id, slot).trouble
        if trouble is not None:
            for line in (f"{trouble.headline}.", trouble.detail, trouble.remedy):
                say(f"  {line}")
        return
    if yes is None:
        for line in question_lines(asked):
            say(line)
        return
    said = orders.answer(session_id, slot, asked.id, yes, reason, rest=not once)
    say(f"{said.session} {said.slot}: {said.state.value}")


@click.command()
@session_argument
@slot_argument
@click.option("--reason", default="", help="A line for the coordinator to read.")
@here_options()
def withdraw(session_id: str, slot: str, here: Home, *, reason: str) -> None:
    """End an order for good: nothing more is sent."""
    from party_sdk.supervisor import Orders

    Orders(here.path).withdraw(session_id, slot, reason)
    say("Withdrawn: nothing more is sent from here.", err=True)


def question_lines(asked: PendingQuestion) -> Iterator[str]:
    """Yield what a person has to decide, and the command that does."""
    yield asked.sentence
    for code, sentence in asked.risks.items():
        yield f"  risk {code}: {sentence}"
    for member in asked.members:
        known = "" if member.known else " (you do not know this key)"
        yield (
            f"  {member.slot}: {member.name or 'gives no name'}{known}, "
            f"{member.n_rows} rows; {member.fingerprint}"
        )
    if asked.safety_number:
        yield f"  safety number {asked.safety_number}"
    found = asked.contribution
    if found is not None:
        yield from (f"  {line}" for line in consent_lines(found))
        yield f"  stage {found.stage}, round {found.round}: {found.n_bytes:,} bytes"
        for array in found.arrays:
            shape = " × ".join(map(str, array.shape))
            size = f"{shape} {array.dtype}, {array.n_bytes:,} bytes"
            lies = f", from {array.minimum:.4g} to {array.maximum:.4g}"
            yield f"    array {array.name}: {size}{lies * (array.minimum is not None)}"
        for envelope in found.envelopes:
            size = f"{envelope.n_bytes:,} bytes"
            yield f"    sealed for {envelope.receiver}: {envelope.kind}, {size}"


def _to_ordered_table(rows: GivenTable) -> OrderedTable:
    from party_sdk.supervisor import OrderedTable
    from party_sdk.tables.mapping import write_mapping

    how = rows.how
    objects = rows.objects_file
    return OrderedTable(
        path=str(Path(rows.path).absolute()),
        id_column=tuple(how.id_column or ()),
        columns=tuple(how.columns or ()),
        csv=tuple(how.dialect.words()),
        dictionary=how.schema,
        mapping=None if how.mapping is None else write_mapping(how.mapping).decode(),
        allow=tuple(how.allow),
        long_form=rows.long_form,
        objects_file=None if objects is None else objects.absolute(),
    )


def _is_served(home: Path) -> bool:
    from party_sdk.supervisor import find_supervisor

    return find_supervisor(home) is not None
