"""`coterie party step`: files carried by hand, for data that touch no connected machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.completion import optional_slot_argument
from party_sdk.cli.options.invitation import invited_argument, read_invitation
from party_sdk.cli.options.policy import choice_option, policy_options
from party_sdk.cli.options.tables import GivenTable, data_options
from party_sdk.cli.party.consent import asks_of
from party_sdk.cli.party.party_options import here_options
from party_sdk.cli.terminal.output import say
from party_sdk.cli.terminal.output_files import labels_option, tell_labels
from party_sdk.results.output_files import write_whole

if TYPE_CHECKING:
    from party_sdk.application.home import Home
    from party_sdk.home.policy import Policy
    from party_sdk.offline import TaskFile

out_option = click.option(
    "--out",
    "-o",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write, and to carry over.",
)


@click.group()
def step() -> None:
    """Take part by files that are carried by hand.

    For data on a machine without network.

    'fetch' and 'send' run on a connected machine that holds no data. 'answer' runs on the
    machine with the data. Fetch, carry, answer, carry and send, and repeat until there
    are labels.
    """


@step.command()
@invited_argument
@optional_slot_argument
@out_option
@here_options()
def fetch(session: str, slot: str | None, out: Path, here: Home) -> None:
    """Fetch what is asked of a party into a file (on the connected machine).

    SESSION is your invitation the first time; later it may be the session's id, with
    SLOT. No data are needed here.
    """
    from party_sdk.offline import Courier

    if "#" in session:
        connected = Courier.of(here.path, session)
    elif slot is None:
        raise click.UsageError("Name the slot beside the session.")
    else:
        connected = Courier(here.path, session, slot)
    say("Asking the analyst, which may hold the question for a while.", err=True)
    with here.connect(connected.url) as analyst:
        task = connected.fetch(analyst)
    write_whole(task.to_bytes(), out)
    say(f"file number {task.number} in {out}: carry it to the machine with the data")


@step.command()
@click.argument("task_file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("invitation", required=False, default="", callback=read_invitation)
@data_options
@out_option
@labels_option
@policy_options
@choice_option
@click.option(
    "--confirm",
    is_flag=True,
    help="Show what will be sent, and ask before it is written.",
)
@here_options(sends=True, maps=True)
def answer(
    task_file: Path,
    invitation: str,
    rows: GivenTable,
    out: Path,
    labels: Path,
    policy: Policy,
    choices: Mapping[str, Any],
    here: Home,
    *,
    force: bool,
    confirm: bool,
) -> None:
    """Answer a file that was fetched (on the machine without network).

    INVITATION is needed once. Every check of 'party run' is made here: terms, risks,
    guards, table, members. At the end this writes the labels.
    """
    from party_sdk.application.outputs import Outputs
    from party_sdk.offline import AnswerReady, NothingMore, OfflineAnalyst, TaskFile
    from party_sdk.offline.offline_analyst import Turns, read_file

    task = TaskFile.read(read_file(task_file))
    folder = here.folder(task.session, task.slot)
    invitation = invitation or folder.load_identity().invitation
    _check_own(invitation, task)
    turns = Turns(folder)
    turns.check(task)
    here = replace(here, carried=OfflineAnalyst(task))
    if not folder.exists:
        from coterie_pages.terminal_text import sheet_lines

        for line in sheet_lines(here.sheet(here.offer(invitation))):
            say(line, err=True)
    policy = here.accept(invitation, policy)
    outputs = Outputs(labels=labels, force=force)
    with here.join(
        invitation, policy, choices, asks=asks_of(confirm=confirm)
    ) as member:
        try:
            result = here.run(member, rows, outputs)
        except AnswerReady as leaving:
            write_whole(leaving.answer.to_signed_bytes(member.identity), out)
            turns.count(task)
            say(f"an answer in {out}: carry it to the connected machine")
            return
        except NothingMore:
            say("Nothing is to be answered in this file: fetch the next one.")
            return
    turns.count(task)
    tell_labels(labels, len(result.labels))


@step.command()
@click.argument("answer_file", type=click.Path(path_type=Path, dir_okay=False))
@here_options()
def send(answer_file: Path, here: Home) -> None:
    """Send an answer (on the connected machine)."""
    from party_sdk.offline import AnswerFile, Courier
    from party_sdk.offline.offline_analyst import read_file

    answered = AnswerFile.read(read_file(answer_file))
    connected = Courier(here.path, answered.session, answered.slot)
    with here.connect(connected.url) as analyst:
        said = connected.send(answered, analyst)
    say(f"{answered.session} {answered.slot}: {said}")


def _check_own(invitation: str, task: TaskFile) -> None:
    from clustering_protocols.common.errors import GuardRefused
    from party_sdk.analyst_client.invitations import Invitation

    parsed = Invitation.parse(invitation)
    if (parsed.session, parsed.slot) != (task.session, task.slot):
        raise GuardRefused(
            f"This file is for {task.session} {task.slot}; the invitation is for "
            f"{parsed.session} {parsed.slot}."
        )
