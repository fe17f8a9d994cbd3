"""`coterie party …`: what a party operator does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.arguments import (
    invitation_argument,
    invited_argument,
    optional_slot_argument,
    typed_invitation,
)
from party_sdk.cli.options.common import LongCommand
from party_sdk.cli.options.policy import choice_option, policy_options
from party_sdk.cli.options.release import documents, outcome_lines, profile_lines
from party_sdk.cli.options.tables import data_options, own_rows_options
from party_sdk.cli.party.home import audit, forget, leave, status
from party_sdk.cli.party.party_options import here_options, option_words
from party_sdk.cli.party.results import predict, report
from party_sdk.cli.session.notify import notify_option
from party_sdk.cli.table import check_output
from party_sdk.cli.terminal.output import (
    Output,
    json_output,
    report_lines,
    say,
    show_notes,
    show_progress,
)
from party_sdk.cli.terminal.output_files import (
    force_option,
    label_lines,
    labels_option,
    picture_option,
    write_assessment,
    write_page,
)
from party_sdk.home.policy import Policy, describe_quota, match_keys_at, quota_options
from party_sdk.results.output_files import keep_others

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Rehearsal
    from clustering_protocols.terms.terms import Terms
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


for _command in (report, status, audit, leave, forget, predict):
    party.add_command(_command)


@party.command()
@invitation_argument
@click.option("--annex", is_flag=True, help="Print the annex too.")
@click.option(
    "--out",
    "outs",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a file. .html: the sheet, to print and sign. .md: a data protection impact "
    "assessment, filled from the terms. Again for both.",
)
@force_option
@here_options()
@json_output
def terms(
    invitation: str, outs: tuple[Path, ...], here: Home, *, annex: bool, force: bool
) -> Output:
    """Read the terms in words: one page to accept or sign, and an annex.

    The page says who invites and what for, what is sent, who reads what, and every risk.
    Its last line is the SHA-256 that 'coterie party run --accept' takes. The annex names
    what will be sent in which form, and what would remove each risk. The command sends
    only the question what the invitation is for.
    """
    from coterie_pages import terminal_text

    keep_others(outs, None, force=force)
    sheet = here.sheet(here.offer(invitation))
    for path in outs:
        is_page = path.suffix.lower() in {".html", ".htm"}
        (write_page if is_page else write_assessment)(sheet, path)
    annexed = terminal_text.annex_lines(sheet) if annex else ()
    signed = terminal_text.signature_lines(sheet)
    shown = chain(terminal_text.page_lines(sheet), signed, annexed)
    return Output(sheet, () if outs else shown)


@party.command(
    cls=LongCommand, shown="data id-column columns labels accept json help-all"
)
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
@json_output
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
) -> Output:
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
            return Output(member.terms, _joined_lines(here, member, policy, addresses))
        return take_part(here, member, rows, labels, picture, force=force)


def _joined_lines(
    here: Home, member: Party, policy: Policy, addresses: Sequence[str]
) -> Iterator[str]:
    """Yield who has accepted the terms; say what comes next."""
    from clustering_protocols.secrecy.identities import fingerprint

    own = member.identity
    yield f"you are {own.name or 'without a name'}: {fingerprint(own.key)}"
    for address in addresses:
        say(f"{address} is notified once you have run with your data.", err=True)
    show_quota(member, policy)
    following = next_command(typed_invitation(), member, policy, option_words(here))
    say(f"Next: {following}", err=True)


@party.command()
@invitation_argument
@data_options
@click.option(
    "--rehearse",
    "rehearses",
    is_flag=True,
    help="Play the session at home, with your table and made-up others, and show what "
    "would be sent, array by array. Its labels mean nothing.",
)
@choice_option
@here_options()
@json_output
def check(
    invitation: str,
    rows: TableSpec,
    choices: Mapping[str, Any],
    here: Home,
    *,
    rehearses: bool,
) -> Output:
    """Check your table against terms, without joining.

    Nothing is sent but the question what the invitation is for. Ends with 5 if there are
    problems, each with its line.
    """
    offer = here.offer(invitation)
    slot = offer.invitation.slot
    rows = here.map_rows(here.stored(offer.terms.session, slot), rows)
    if rehearses:
        return _rehearse(here, offer.terms, slot, rows, choices)
    report = rows.check_table(offer.terms, slot)
    return check_output(report, fails=bool(report.problems))


def _rehearse(
    here: Home, terms: Terms, slot: str, rows: TableSpec, choices: Mapping[str, Any]
) -> Output:
    from clustering_protocols.terms.session_risks import SUMS_LIMIT
    from party_sdk.admission.table_admission import agreed_in
    from party_sdk.home.policy_files import read_policy
    from party_sdk.lab import rehearse

    limit = read_policy(here.path).sums_limit
    data = rows.open(agreed_in(terms, slot))
    found = rehearse(terms, slot, data, {SUMS_LIMIT: limit, **choices})
    show_notes(found.notes)
    return Output(found, rehearsal_lines(found, terms))


def rehearsal_lines(found: Rehearsal, terms: Terms) -> Iterator[str]:
    """Yield what would be sent, in the words of the terms sheet."""
    from party_sdk.cli.terminal.asker import inspection_lines

    for each in found.left:
        yield from inspection_lines(each.example, terms)
        if each.n > 1:
            yield (
                f"  and {each.n - 1} more of this form, until round {each.last}: "
                f"{each.n_bytes:,} bytes in all"
            )
    for asks in found.asks:
        yield f"You would be asked: {asks}"
    yield (
        f"{found.n_rows} rows; {found.rounds} rounds; {found.n_bytes:,} bytes would be sent; "
        f"{found.seconds:.1f} s of work here. Nothing was sent."
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
) -> Output:
    """Run a party; return its result."""
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
    unlinked = here.find_unlinked(member, rows, result)
    document = _document(member, result, labels)
    if unlinked:
        document["unlinked"] = [each._asdict() for each in unlinked]
    lines = _result_lines(member, result, labels, tell_unlinked(unlinked))
    pictures = [] if picture is None else [f"a picture in {picture}"]
    return Output(document, [*lines, *pictures])


def _result_lines(
    member: Party, result: Result, labels: Path, unlinked: Sequence[str]
) -> Iterator[str]:
    from coterie_pages.result_texts import rows_without_cluster
    from coterie_pages.views.result_views import outcomes_in
    from party_sdk.reports.run_reports import linked_rows
    from party_sdk.results.cautions import oddities, result_cautions

    if linked := linked_rows(member.terms, member.invitation.slot, result):
        yield f"linked rows: {linked}"
    yield from unlinked
    if not result.is_description:
        yield from label_lines(labels, len(result.labels))
    if result.cluster_sizes is not None:
        own, sizes = result.own_sizes.tolist(), result.cluster_sizes.tolist()
        all_, yours = (", ".join(map(str, each)) for each in (sizes, own))
        yield f"rows of all parties per cluster: {all_}; yours: {yours}"
        if without := len(result.labels) - sum(own):
            yield f"label -1: {rows_without_cluster(without)}"
        for sentence in oddities(own, sizes):
            _warn(sentence)
    for sentence in result_cautions(member.terms, result):
        _warn(sentence)
    told = {k: v for k, v in result.report.items() if k != "n_coinciding"}
    yield from report_lines(told)
    yield from _runs_of(member, result)
    yield from profile_lines(result.profiles)
    yield from outcome_lines(outcomes_in(member.terms, result.profiles))
    for cluster, items in enumerate(result.top_items(result.columns)):
        yield f"cluster {cluster}: {', '.join(items)}"


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
