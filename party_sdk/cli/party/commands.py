"""`coterie party …`: join a session, check a table, and run until there are labels."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from party_sdk.cli.options import (
    OUT,
    Choices,
    Entropy,
    Force,
    Guards,
    HomeOptions,
    InvitationArgument,
    Labels,
    MaybeSlot,
    NewMapping,
    Notify,
    TableOptions,
    invitation_text,
    policy_with_guards,
)
from party_sdk.cli.parameters import command, option
from party_sdk.cli.party.home import audit, forget, leave, status
from party_sdk.cli.party.results import predict, report
from party_sdk.cli.table import report_output
from party_sdk.cli.terminal.output import (
    Output,
    report_lines,
    say,
    show_notes,
    show_progress,
)
from party_sdk.cli.terminal.result_lines import (
    label_lines,
    outcome_lines,
    profile_lines,
    profiles_as_json,
    run_table_lines,
    write_assessment,
    write_page,
)
from party_sdk.home.policy import count_match_keys, explain_quota, quota_options
from party_sdk.results.output_files import refuse_overwriting

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Rehearsal
    from clustering_protocols.terms.terms import Terms
    from party_sdk.admission.table_files import TableSpec
    from party_sdk.application.home import Home
    from party_sdk.application.outputs import Outputs
    from party_sdk.home.policy import Policy
    from party_sdk.party.participant import Party
    from party_sdk.results.results import Result


@click.group()
def party() -> None:
    """Join a session with an invitation, and run until you have labels (for a party)."""


for _command in (report, status, audit, leave, forget, predict):
    party.add_command(_command)


@command(party)
def terms(
    invitation: InvitationArgument,
    *,
    out: Annotated[
        tuple[Path, ...],
        option(
            "Write a file. .html: the sheet, to print and sign. .md: a data protection "
            "impact assessment, filled in from the terms. May be repeated.",
            type=OUT,
        ),
    ] = (),
    force: Force = False,
    home: HomeOptions,
) -> Output:
    """Read the terms in words: one page that you accept or sign.

    The page says who invites you and why, what is sent, who can read it, and every
    risk. Its last line is the SHA-256 that 'coterie party run --accept' takes. --out
    and --json also describe everything that will be sent, and what would remove each
    risk. The command only requests the terms of the invitation from the analyst.
    """
    from coterie_pages import terminal_text

    refuse_overwriting(out, None, force=force)
    own_home, policy = home.open(), policy_with_guards(home.folder, {})
    sheet = own_home.terms_sheet(own_home.fetch_offer(invitation, policy))
    for path in out:
        is_page = path.suffix.lower() in {".html", ".htm"}
        (write_page if is_page else write_assessment)(sheet, path)
    signature = terminal_text.signature_lines(sheet)
    lines = chain(terminal_text.page_lines(sheet), signature)
    return Output(sheet, () if out else lines)


@dataclass(frozen=True)
class JoiningOptions(HomeOptions):
    """The home of a party that joins, and decisions its operator makes in advance."""

    entropy: Entropy = None
    moved: Annotated[
        bool,
        option(
            "The coordinator confirmed that the analyst has moved: this invitation has "
            "another address than the first one for this slot."
        ),
    ] = False
    new_mapping: NewMapping = False
    patience: Annotated[
        float,
        option(
            "How many seconds to keep trying while the analyst cannot be reached.",
            low=0,
        ),
    ] = 300.0
    safety_number: Annotated[
        str | None,
        option(
            "The safety number as the other members read it to you: a different one "
            "stops the run before any of your data is sent.",
            "--confirm-safety-number",
            metavar="DIGITS",
        ),
    ] = None
    confirmed_with: Annotated[
        tuple[str, ...],
        option(
            "A member that itself read you the safety number; may be given several "
            "times. It counts as known, as if you had its card.",
            metavar="NAME",
        ),
    ] = ()


@command(party, common="data id-column columns labels accept json help-all")
def run(
    session: InvitationArgument,
    slot: MaybeSlot = None,
    *,
    table: TableOptions,
    labels: Labels = Path("labels.csv"),
    force: Force = False,
    details: Annotated[
        bool,
        option(
            "Write the uncertainty of each label, from 0 to 1, if you receive "
            "memberships or centres: for k-means, the distance to the nearest centre "
            "divided by the distance to the second."
        ),
    ] = False,
    accept: Annotated[
        str | None,
        option(
            "Accept the sheet with this SHA-256, which 'coterie party terms' prints: its "
            "risks, and that what it lists is sent. A terminal shows the sheet and asks.",
            metavar="SHA256",
        ),
    ] = None,
    guards: Guards,
    choices: Choices,
    notify: Notify = (),
    home: JoiningOptions,
) -> Output:
    """Take part until you have labels. After an interruption, run it again to continue.

    SESSION is your invitation: its file, or - for standard input, because other users
    of this machine can read command lines. Once you have joined, the id of the session
    and SLOT are enough. The first time, you read the terms sheet and accept it. Without
    --data the command then ends: none of your data is read or sent.
    """
    from party_sdk.analyst_client.invitations import Invitation
    from party_sdk.application.outputs import Outputs

    outputs = Outputs(labels=labels, details=details, force=force)
    rows = table.build_spec(outputs.paths, force=force)
    answers = {name: value for name, value in vars(home).items() if name != "home"}
    own_home, policy = home.open(**answers), policy_with_guards(home.folder, guards)
    invitation = session
    if slot is not None and "#" not in session:
        invitation = own_home.stored_session(session, slot).load_identity().invitation
    parsed = Invitation.parse(invitation)
    if slot not in {None, parsed.slot}:
        raise click.UsageError(f"The invitation is for slot {parsed.slot}, not {slot}.")
    offer = None
    if not own_home.stored_session(parsed.session, parsed.slot).exists:
        offer = own_home.fetch_offer(invitation, policy)
        if rows is not None:  # check the table before asking for consent
            from party_sdk.admission.table_admission import slot_fields_of

            quiet_rows = replace(rows, on_open=None)
            quiet_rows.open(slot_fields_of(offer.terms, parsed.slot))
    policy = own_home.ask_consent(invitation, policy, offer, accept)
    with own_home.join(invitation, policy, choices, offer) as member:
        if notify:
            member.request_notifications(notify)
        if rows is None:
            lines = _joined_lines(member, policy, notify, home.arguments)
            return Output(member.terms, lines)
        return _take_part(own_home, member, rows, outputs)


def _joined_lines(
    member: "Party", policy: "Policy", addresses: Sequence[str], words: Sequence[str]
) -> Iterator[str]:
    """Yield a line that names the party's institution, and print what to do next."""
    from clustering_protocols.secrecy.identities import fingerprint
    from clustering_protocols.session_terms import check_terms

    institution = member.identity
    yield f"you are {institution.name or 'without a name'}: {fingerprint(institution.key)}"
    for address in addresses:
        say(f"{address} is notified once you have run with your data.", err=True)
    params, quota = check_terms(member.terms), policy.ids_per_row
    if needs := explain_quota(len(params.linking_keys), quota):
        say(needs)
    elif params.selects_rows:
        word = "values of match keys" if params.linking_keys else "ids"
        say(
            f"{word}: each other party of your row group may bring at most "
            f"{quota:g} for each of your rows (ids_per_row); how many each brings is "
            "shown before yours are sent, masked"
        )
    terms, slot, typed = member.terms, member.invitation.slot, invitation_text()
    # The file name of an invitation may be printed; the invitation itself is a secret.
    is_file = typed.startswith("@") or typed.endswith(".invitation")
    run = ["coterie", "party", "run", *([typed] if is_file else [terms.session, slot])]
    more = quota_options(count_match_keys(terms, slot), quota)
    say(f"Next: {shlex.join([*run, *words, *more])} --data FILE", err=True)


@command(party)
def check(
    invitation: InvitationArgument,
    *,
    table: TableOptions,
    rehearse: Annotated[
        bool,
        option(
            "Simulate the session here, with your table and invented others, and show "
            "what would be sent, array by array. Its labels are meaningless."
        ),
    ] = False,
    choices: Choices,
    home: HomeOptions,
) -> Output:
    """Check your table against the terms of a session, without joining.

    The command only requests the terms of the invitation from the analyst. Each problem
    is printed with its line, and the exit code is 5 if there are any.
    """
    rows, own_home = table.require_spec(), home.open()
    policy = policy_with_guards(home.folder, {})
    offer = own_home.fetch_offer(invitation, policy)
    terms, slot = offer.terms, offer.invitation.slot
    rows = own_home.map_spec(own_home.stored_session(terms.session, slot), rows)
    if not rehearse:
        report = rows.check_table(terms, slot)
        return report_output(report, fails=bool(report.problems))
    from clustering_protocols.terms.session_risks import SUMS_LIMIT
    from party_sdk.admission.table_admission import slot_fields_of
    from party_sdk.lab.rehearsal import rehearse as play

    data = rows.open(slot_fields_of(terms, slot))
    rehearsal = play(terms, slot, data, {SUMS_LIMIT: policy.sums_limit, **choices})
    show_notes(rehearsal.notes)
    return Output(rehearsal, rehearsal_lines(rehearsal, terms))


def rehearsal_lines(rehearsal: "Rehearsal", terms: "Terms") -> Iterator[str]:
    """Yield all contributions of a rehearsal, described in the words of the terms sheet."""
    from party_sdk.cli.terminal.asker import inspection_lines

    for contribution in rehearsal.left:
        yield from inspection_lines(contribution.example, terms)
        if contribution.n > 1:
            yield (
                f"  and {contribution.n - 1} more of this form, until round {contribution.last}: "
                f"{contribution.n_bytes:,} bytes in all"
            )
    for asks in rehearsal.asks:
        yield f"You would be asked: {asks}"
    yield (
        f"{rehearsal.n_rows} rows; {rehearsal.rounds} rounds; {rehearsal.n_bytes:,} bytes would be sent; "
        f"{rehearsal.seconds:.1f} s of work here. Nothing was sent."
    )


_INTERRUPTED_CODE = 130  # the convention of shells


def _take_part(
    home: "Home", member: "Party", rows: "TableSpec", outputs: "Outputs"
) -> Output:
    from party_sdk.tables.linkage import describe_unlinked

    try:
        result = home.run(
            member, rows, outputs, on_warning=_print_warning, on_progress=show_progress
        )
    except KeyboardInterrupt:
        say("Stopped. The same command continues where it stopped.", err=True)
        raise click.exceptions.Exit(_INTERRUPTED_CODE) from None
    unlinked = home.find_unlinked(member, rows, result)
    document = _result_document(member, result, outputs)
    if unlinked:
        document["unlinked"] = [row._asdict() for row in unlinked]
    return Output(
        document, _result_lines(member, result, outputs, describe_unlinked(unlinked))
    )


def _result_lines(
    member: "Party", result: "Result", outputs: "Outputs", unlinked: Sequence[str]
) -> Iterator[str]:
    from coterie_pages.result_texts import rows_without_cluster
    from coterie_pages.views.session_views import outcomes_in
    from party_sdk.reports.run_reports import describe_linked_rows, result_details

    terms = member.terms
    if linked := describe_linked_rows(terms, member.invitation.slot, result):
        yield f"linked rows: {linked}"
    yield from unlinked
    if outputs.labels is not None and not result.is_description:
        yield from label_lines(outputs.labels, len(result.labels))
    details = result_details(terms, result)
    if sizes := details["sizes"]:
        all_counts, own_counts = (
            ", ".join(map(str, counts)) for counts in (sizes, details["own_sizes"])
        )
        yield f"rows of all parties per cluster: {all_counts}; yours: {own_counts}"
        if n_unassigned := details["without"]:
            yield f"label -1: {rows_without_cluster(n_unassigned)}"
    for sentence in details["odd"]:
        _print_warning(sentence)
    yield from report_lines(
        {k: v for k, v in result.report.items() if k != "n_coinciding"}
    )
    yield from run_table_lines(details["runs"])
    yield from profile_lines(result.profiles)
    yield from outcome_lines(outcomes_in(terms, result.profiles))
    for cluster, items in enumerate(result.top_items(result.columns)):
        yield f"cluster {cluster}: {', '.join(items)}"


def _print_warning(sentence: str) -> None:
    say(f"warning: {sentence}", err=True)


def _result_document(
    member: "Party", result: "Result", outputs: "Outputs"
) -> dict[str, Any]:
    """Return the result as JSON values, without the labels, which stay in their file."""
    from coterie_pages.views.session_views import outcomes_in
    from party_sdk.reports.run_reports import run_lines

    sizes, centroids = result.cluster_sizes, result.centroids
    return {
        "session": member.terms.session,
        "slot": member.invitation.slot,
        "labels": str(outputs.labels),
        "n_rows": len(result.labels),
        "columns": list(result.columns),
        "cluster_sizes": None if sizes is None else sizes.tolist(),
        "own_sizes": result.own_sizes.tolist(),
        "centroids": None if centroids is None else centroids.tolist(),
        "runs": [
            {**run.figures, "n_clusters": run.n_clusters, "chosen": run.chosen}
            for run in run_lines(member.terms, result)
        ],
        **profiles_as_json(result.profiles, outcomes_in(member.terms, result.profiles)),
        "report": dict(result.report),
        "safety_number": member.safety_number,
    }
