"""`coterie party step`: files carried by hand, for data that touch no connected machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.completing import optional_slot_argument
from party_sdk.cli.consent import consent, sheet_for
from party_sdk.cli.invited import invited_argument, read_invitation
from party_sdk.cli.output import say
from party_sdk.cli.outputs import labels_option
from party_sdk.cli.party_options import PartyOptions, here_options
from party_sdk.cli.policy_options import choice_option, policy_options
from party_sdk.cli.table_options import GivenTable, data_options
from party_sdk.outputs import keep_others, remembered, write_whole

if TYPE_CHECKING:
    from party_sdk.policy import Policy
    from party_sdk.stepping import TaskFile

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

    'fetch' and 'send' run on a connected machine that holds no data, 'answer' on the
    other: fetch, carry, answer, carry, send, and again until there are labels.
    """


@step.command()
@invited_argument
@optional_slot_argument
@out_option
@here_options()
def fetch(session: str, slot: str | None, out: Path, here: PartyOptions) -> None:
    """Fetch what is asked of a party into a file (on the connected machine).

    SESSION is your invitation the first time; later it may be the session's id, with
    SLOT. No data are needed here.
    """
    from party_sdk.stepping import Connected

    if "#" in session:
        connected = Connected.of(here.home, session)
    elif slot is None:
        raise click.UsageError("Name the slot beside the session.")
    else:
        connected = Connected(here.home, session, slot)
    say("Asking the analyst, which may hold the question for a while.", err=True)
    with here.transport(connected.url) as transport:
        task = connected.fetch(transport)
    write_whole(task.written(), out)
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
    help="Show what is to leave and ask before it is written.",
)
@here_options(sends=True)
def answer(
    task_file: Path,
    invitation: str,
    rows: GivenTable,
    out: Path,
    labels: Path,
    policy: Policy,
    choices: Mapping[str, Any],
    here: PartyOptions,
    *,
    force: bool,
    confirm: bool,
) -> None:
    """Answer a file that was fetched (on the machine without network).

    INVITATION is needed once. Every check of 'party run' is made here: terms, risks,
    guards, table, members. At the end this writes the labels.
    """
    from party_sdk.stepping import Carried, Leaving, NothingMore, TaskFile
    from party_sdk.stepping.carried import Turns, read_file

    task = TaskFile.read(read_file(task_file))
    folder = here.folder(task.session, task.slot)
    invitation = invitation or folder.load_identity().invitation
    _check_own(invitation, task)
    turns = Turns(folder)
    turns.check(task)
    here = replace(here, carried=Carried(task))
    if not folder.exists:
        from coterie_pages.text import sheet_lines

        for line in sheet_lines(sheet_for(invitation, here)):
            say(line, err=True)
    policy = consent(invitation, policy, here)
    asked = here.asking(invitation, everything=confirm)
    with here.join(invitation, policy, choices, asked) as member:
        keep_others([labels], folder.path, force=force)
        try:
            result = member.run(rows.open(member.agreed))
        except Leaving as leaving:
            write_whole(leaving.answer.signed(member.identity), out)
            turns.count(task)
            say(f"an answer in {out}: carry it to the connected machine")
            return
        except NothingMore:
            say("Nothing is to be answered in this file: fetch the next one.")
            return
        with remembered([labels], folder.path):
            path = result.save(labels)
    turns.count(task)
    say(f"{len(result.labels)} labels in {path}")


@step.command()
@click.argument("answer_file", type=click.Path(path_type=Path, dir_okay=False))
@here_options()
def send(answer_file: Path, here: PartyOptions) -> None:
    """Send an answer (on the connected machine)."""
    from party_sdk.stepping import AnswerFile, Connected
    from party_sdk.stepping.carried import read_file

    answered = AnswerFile.read(read_file(answer_file))
    connected = Connected(here.home, answered.session, answered.slot)
    with here.transport(connected.url) as transport:
        said = connected.send(answered, transport)
    say(f"{answered.session} {answered.slot}: {said}")


def _check_own(invitation: str, task: TaskFile) -> None:
    from clustering_protocols.errors import GuardRefused
    from party_sdk.invitations import Invitation

    parsed = Invitation.parse(invitation)
    if (parsed.session, parsed.slot) != (task.session, task.slot):
        raise GuardRefused(
            f"This file is for {task.session} {task.slot}; the invitation is for "
            f"{parsed.session} {parsed.slot}."
        )
