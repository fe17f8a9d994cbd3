"""`coterie party …`: what a party operator does."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.wire.states import StopReason
from party_sdk.cli.options.arguments import (
    invitation_argument,
    invited_argument,
    optional_slot_argument,
    session_argument,
    slot_argument,
    typed_invitation,
)
from party_sdk.cli.options.policy import choice_option, policy_options
from party_sdk.cli.options.release import documents, outcome_lines, profile_lines
from party_sdk.cli.options.tables import data_options, own_rows_options
from party_sdk.cli.party.exports import export, name
from party_sdk.cli.party.home import audit, consent, forget, list_parties, status
from party_sdk.cli.party.new_rows import predict
from party_sdk.cli.party.pages import report, terms
from party_sdk.cli.party.party_options import here_options, option_words
from party_sdk.cli.party.rehearse import rehearse
from party_sdk.cli.party.runs import runs
from party_sdk.cli.session.notify import address_options, answer, notify_option
from party_sdk.cli.table import INPUT_UNUSABLE, show_report
from party_sdk.cli.terminal.output import json_option, report_lines, say, show_progress
from party_sdk.cli.terminal.output_files import (
    labels_option,
    picture_option,
    tell_labels,
)
from party_sdk.home.policy import Policy, describe_quota, match_keys_at, quota_options

if TYPE_CHECKING:
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home
    from party_sdk.party.participant import Party
    from party_sdk.results.results import Result


_notify_option = notify_option("your turn")
accept_option = click.option(
    "--accept",
    metavar="SHA256",
    help="Accept the sheet with this SHA-256, which 'coterie party terms' prints: its "
    "risks, and that what it lists is sent. A terminal shows the sheet and asks.",
)


@click.group()
def party() -> None:
    """Join with an invitation and run to the labels (for a party)."""


for _command in (
    name,
    runs,
    terms,
    report,
    list_parties,
    status,
    audit,
    consent,
    forget,
):
    party.add_command(_command)
for _command in (rehearse, predict, export):
    party.add_command(_command)


@party.command()
@invited_argument
@optional_slot_argument
@own_rows_options
@labels_option
@picture_option
@accept_option
@policy_options
@choice_option
@_notify_option
@here_options(joins=True, sends=True, maps=True)
@json_option
def run(
    session: str,
    slot: str | None,
    rows: TableSpec | None,
    labels: Path,
    picture: Path | None,
    accept: str | None,
    policy: Policy,
    choices: Mapping[str, Any],
    here: Home,
    *,
    addresses: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Take part until there are labels. Interrupted, run it again: it continues.

    SESSION is your invitation: its file, or - for standard input, because other users of
    this machine can read command lines. Once you have joined, the names of session and
    SLOT continue without it. The first time you read the terms sheet and accept it.
    Without --data that is all: nothing of your data is read or sent.
    """
    from party_sdk.analyst_client.invitations import Invitation

    folder = None if slot is None else here.stored(session, slot)
    invitation = session if folder is None else folder.load_identity().invitation
    parsed = Invitation.parse(invitation)
    offer = None
    if not here.stored(parsed.session, parsed.slot).exists:
        offer = here.offer(invitation, policy)
        if rows is not None:  # whether it can be used is known before anything is asked
            from party_sdk.admission.table_admission import agreed_in

            named = replace(rows, on_open=None)
            named.open(agreed_in(offer.terms, parsed.slot))
    policy = here.accept(invitation, policy, offer, accept)
    with here.join(invitation, policy, choices) as member:
        if addresses:
            member.notify(addresses)
        if rows is None:
            _show_joined(here, member, policy, addresses, as_json=as_json)
            return
        take_part(here, member, rows, labels, picture, force=force, as_json=as_json)


def _show_joined(
    here: Home,
    member: Party,
    policy: Policy,
    addresses: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Say who has accepted the terms, and what comes next."""
    from clustering_protocols.secrecy.identities import fingerprint

    if as_json:
        say(member.terms.model_dump_json())
        return
    own = member.identity
    say(f"you are {own.name or 'without a name'}: {fingerprint(own.key)}")
    for address in addresses:
        say(f"{address} is notified once you have run with your data.", err=True)
    show_quota(member, policy)
    following = next_command(typed_invitation(), member, policy, option_words(here))
    say(f"Next: {following}", err=True)


@party.command()
@invitation_argument
@data_options
@here_options()
@json_option
@click.pass_context
def check(
    context: click.Context,
    invitation: str,
    rows: TableSpec,
    here: Home,
    *,
    as_json: bool,
) -> None:
    """Check your table against terms, without joining.

    Nothing is sent but the question what the invitation is for. Ends with 5 if there are
    problems, each with its line.
    """
    offer = here.offer(invitation)
    folder = here.stored(offer.terms.session, offer.invitation.slot)
    rows = here.map_rows(folder, rows)
    report = rows.check_table(offer.terms, offer.invitation.slot)
    show_report(report, as_json=as_json)
    if report.problems:
        context.exit(INPUT_UNUSABLE)


@party.command()
@invited_argument
@optional_slot_argument
@click.option("--reason", default="", help="A line for the coordinator to read.")
@click.option(
    "--because",
    type=click.Choice([word.value for word in StopReason if word != StopReason.HELD]),
    default=StopReason.LEFT.value,
    show_default=True,
    help="The one word that all others read, once you have run with your data.",
)
@here_options()
def leave(
    session: str, slot: str | None, reason: str, because: str, here: Home
) -> None:
    """Do not take part, or stop for good: nothing more is sent.

    With your invitation, before you have run with your data, the coordinator reads that
    you decline, and why; with the same invitation you may still join later. Afterwards,
    by SESSION and SLOT too, all read that you stopped, and one word why. The session
    ends, or continues without you where its terms allow that.
    """
    if "#" in session:
        from party_sdk.analyst_client.invitations import Invitation

        parsed = Invitation.parse(session)
        if not here.stored(parsed.session, parsed.slot).has_joined:
            here.decline(session, reason)
            read = reason or "you give no reason"
            say(f"You declined. The coordinator reads: {read}.", err=True)
            return
    folder = here.one_of(session, slot)
    had_joined = folder.has_joined
    is_told = here.leave(folder.session, folder.slot, reason, StopReason(because))
    if is_told and not had_joined:
        say("You left. The coordinator reads that you decline.", err=True)
        return
    say("You left: nothing more is sent from here. What was sent stays sent.", err=True)
    if is_told:
        say(f"The others read that you stopped for good ({because}).", err=True)
        return
    say(
        "The others wait for you until the deadline: ask the coordinator to cancel the "
        f"session (coterie session cancel {folder.session}).",
        err=True,
    )


def next_command(
    typed: str, member: Party, policy: Policy, words: Sequence[str]
) -> str:
    """Return the command that takes part, for anyone who has joined with an invitation.

    typed: what stood for the invitation. A file is named again; an invitation itself is
        a secret, and the session is named instead.
    words: options that the next command needs as well.
    """
    terms, slot = member.terms, member.invitation.slot
    is_file = typed.startswith("@") or typed.endswith(".invitation")
    place = ["run", *([typed] if is_file else [terms.session, slot])]
    n_keys = match_keys_at(terms, slot)
    quota = quota_options(n_keys, policy.ids_per_row)
    named = shlex.join(["coterie", "party", *place, *words, *quota])
    return f"{named} --data FILE"


def show_quota(member: Party, policy: Policy) -> None:
    """Say how many ids others may hold against this party's, where any are compared."""
    from clustering_protocols.session_terms import check_terms

    params = check_terms(member.terms)
    if needs := describe_quota(len(params.linked_by), policy.ids_per_row):
        say(needs)
    elif params.selects_rows:
        word = "values of match keys" if params.linked_by else "ids"
        say(
            f"{word}: each other party of your row group may bring at most "
            f"{policy.ids_per_row:g} for each of your rows (ids_per_row); how many "
            "each brings is shown before yours leave, blinded"
        )


_INTERRUPTED = 130  # as shells say it


def take_part(
    here: Home,
    member: Party,
    rows: TableSpec,
    labels: Path,
    picture: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Run a party, and print its result."""
    from party_sdk.application.outputs import Outputs
    from party_sdk.tables.linkage import tell_unlinked

    outputs = Outputs(labels=labels, picture=picture, force=force)
    try:
        result = here.run(
            member, rows, outputs, on_warning=_warn, on_progress=show_progress
        )
    except KeyboardInterrupt:
        say("Stopped. The same command continues where it was.", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    if picture is not None:
        say(f"a picture in {picture}", err=True)
    unlinked = here.find_unlinked(member, rows, result)
    if as_json:
        rows_told = {"unlinked": [each._asdict() for each in unlinked]}
        told = rows_told if unlinked else {}
        say(json.dumps(_document(member, result, labels) | told))
        return
    _show(member, result, labels, tell_unlinked(unlinked))


def _show(member: Party, result: Result, labels: Path, unlinked: Sequence[str]) -> None:
    from coterie_pages.result_texts import rows_without_cluster
    from coterie_pages.views.result_views import outcomes_in
    from party_sdk.reports.run_reports import linked_rows
    from party_sdk.results.cautions import oddities, result_cautions

    if linked := linked_rows(member.terms, member.invitation.slot, result):
        say(f"linked rows: {linked}")
    for line in unlinked:
        say(line)
    if not result.is_description:
        tell_labels(labels, len(result.labels))
    if result.cluster_sizes is not None:
        own, sizes = result.own_sizes.tolist(), result.cluster_sizes.tolist()
        all_, yours = (", ".join(map(str, each)) for each in (sizes, own))
        say(f"rows of all parties per cluster: {all_}; yours: {yours}")
        if without := len(result.labels) - sum(own):
            say(f"label -1: {rows_without_cluster(without)}")
        for sentence in oddities(own, sizes):
            _warn(sentence)
    for sentence in result_cautions(member.terms, result):
        _warn(sentence)
    told = {k: v for k, v in result.report.items() if k != "n_coinciding"}
    for line in report_lines(told):
        say(line)
    profiles = profile_lines(result.profiles)
    outcomes = outcome_lines(outcomes_in(member.terms, result.profiles))
    for line in chain(_runs_of(member, result), profiles, outcomes):
        say(line)
    for cluster, items in enumerate(result.top_items(result.columns)):
        say(f"cluster {cluster}: {', '.join(items)}")


def _warn(sentence: str) -> None:
    say(f"warning: {sentence}", err=True)


def _runs_of(member: Party, result: Result) -> Iterator[str]:
    from party_sdk.cli.terminal.run_table import table_lines
    from party_sdk.reports.run_reports import numbers_of

    figures = [each.values for each in result.figures]
    return table_lines(numbers_of(member.terms, result), figures, result.chosen)


def _document(member: Party, result: Result, path: Path) -> dict[str, Any]:
    """Return the whole result but the labels, which stay in their file."""
    from coterie_pages.views.result_views import outcomes_in
    from party_sdk.reports.run_reports import runs_of

    sizes, centroids = result.cluster_sizes, result.centroids
    return {
        "session": member.terms.session,
        "slot": member.invitation.slot,
        "labels": str(path),
        "n_rows": len(result.labels),
        "columns": list(result.columns),
        "cluster_sizes": None if sizes is None else sizes.tolist(),
        "own_sizes": result.own_sizes.tolist(),
        "centroids": None if centroids is None else centroids.tolist(),
        "runs": [
            {**run.figures, "n_clusters": run.n_clusters, "chosen": run.chosen}
            for run in runs_of(member.terms, result)
        ],
        **documents(result.profiles, outcomes_in(member.terms, result.profiles)),
        "report": dict(result.report),
        "safety_number": member.safety_number,
    }


@party.command("notify")
@session_argument
@slot_argument
@address_options
@here_options()
@json_option
def notify_party(
    session_id: str,
    slot: str,
    here: Home,
    *,
    as_json: bool,
    **asked: str | None,
) -> None:
    """Have the analyst notify you of your turn, and of the end.

    It also notifies you when half of a deadline has passed. It sends mail, if its
    administrator has set that up. Without an option, the command lists who is notified
    and which notices failed. The list includes the addresses given at
    'party join --notify'. You need to have run with your data once.
    """
    from party_sdk.party.notifications import read_told

    named = read_told(here.stored(session_id, slot))
    with here.receivers(session_id, slot) as receivers:
        answer(receivers, asked, as_json=as_json, named=named)
