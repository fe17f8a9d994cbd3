"""`coterie session create`: a session opens, invitations are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from party_sdk.cli.options.arguments import opened_sessions, protocol_names
from party_sdk.cli.options.common import (
    SEED,
    LongCommand,
    entropy_option,
    param_option,
    pass_coordinator,
    read_entropy,
    rows_option,
    schema_option,
)
from party_sdk.cli.options.terms import preparation_option, section_options
from party_sdk.cli.session.notify import be_told, notify_option
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.coordinator.letters import check_letters, write_letters
from party_sdk.coordinator.option_parsing import (
    earlier_choice,
    earlier_sections,
    earlier_values,
    merge_values,
    read_dictionary,
    read_expected,
    read_layout,
    read_preparation,
    read_runs,
    read_values,
    with_id_patterns,
    with_match_keys,
)
from party_sdk.home.policy import describe_quota

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clustering_protocols.contract import Params
    from clustering_protocols.terms.schema import Schema
    from clustering_protocols.terms.sections import Evaluation
    from clustering_protocols.terms.terms import Layout
    from party_sdk.coordinator.coordinator import Coordinator
    from party_sdk.coordinator.session import CoordinatedSession

_notify_option = notify_option("slow parties")


invitations_option = click.option(
    "--invitations",
    "letters",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for a file of each invitation and a letter (Markdown) to its party; this "
    "one by default. With --json invitations are printed unless a folder is named.",
)


@click.command(
    cls=LongCommand,
    shown="from protocol clusters party same-people expect purpose schema missing profiles "
    "help-all",
)
@click.argument("title", required=False)
@click.option(
    "--from",
    "earlier",
    metavar="SESSION",
    shell_complete=opened_sessions,
    help="An earlier session of this home: its terms hold where no option says "
    "otherwise. Keys of slots that stay hold too.",
)
@click.option(
    "--protocol",
    shell_complete=protocol_names,
    help="Name of a protocol, e.g. llf; see 'coterie advise'. By default dc.",
)
@param_option
@click.option(
    "--id-pattern",
    "id_patterns",
    multiple=True,
    metavar="PATTERN",
    help="What ids look like, e.g. KV-99999999: 9 is a digit, A a letter. Once for each "
    "id column; 'coterie table --id-patterns' drafts it. Parties compare at home.",
)
@click.option(
    "--match-key",
    "match_keys",
    multiple=True,
    metavar="KEY",
    help="Columns that name a person where there is no common id, e.g. 'surname | soundex "
    "+ birth_date | date'. Once for each key, the surest first; @FILE reads one a line, as "
    "'coterie table --link' prints them.",
)
@click.option(
    "--clusters",
    metavar="NUMBERS",
    help="How many clusters: 3, or 2..6 to compare several.",
)
@click.option(
    "--party",
    "parties",
    multiple=True,
    metavar="NAME[=ROW,COLUMN[,TITLE]]",
    help="A party; again for each. Parties hold other people. A place, counted from 1, says "
    "whose people (ROW) and which variables (COLUMN) it holds instead; the title says who "
    "it is, for people.",
)
@click.option(
    "--same-people",
    is_flag=True,
    help="The parties hold other variables of the same people.",
)
@click.option(
    "--expect",
    "expected",
    multiple=True,
    metavar="SLOT=CARD",
    help="Who alone may sit at a slot: the file of a card, or the name of an institution "
    "that you know. Slots without one are open to anyone who holds their invitation.",
)
@section_options("words")
@click.option(
    "--id", "session_id", help="Id of the session; made from the title by default."
)
@click.option(
    "--seed", type=SEED, help="Seed of the analyst's random starts; drawn by default."
)
@section_options("limits")
@schema_option
@rows_option
@preparation_option(several=True)
@section_options("gaps")
@section_options("runs")
@section_options("results")
@click.option(
    "--new-analyst",
    is_flag=True,
    help="The analyst at this address was set up anew and has another key.",
)
@invitations_option
@_notify_option
@entropy_option
@json_option
@pass_coordinator
def create(
    coordinator: Coordinator,
    title: str | None,
    earlier: str | None,
    protocol: str | None,
    params: tuple[str, ...],
    id_patterns: tuple[str, ...],
    match_keys: tuple[str, ...],
    clusters: str | None,
    parties: tuple[str, ...],
    expected: tuple[str, ...],
    session_id: str | None,
    seed: int | None,
    schema_files: tuple[Path, ...],
    rows: int | None,
    preparation_files: tuple[Path, ...],
    missing: Literal["drop", "mean", "median"] | None,
    letters: Path | None,
    addresses: tuple[str, ...],
    entropy_file: Path | None,
    *,
    same_people: bool,
    new_analyst: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Open a session, and write an invitation for each party.

    Hand each to its party on a channel that the analyst cannot read. With --from last
    quarter's session is repeated; the invitations are new.
    """
    from clustering_protocols import catalogue
    from clustering_protocols.terms.request_fields import read_sections

    said = read_sections(lambda each: options.get(each.option))
    coordinator.entropy = read_entropy(entropy_file)
    before = None if earlier is None else coordinator.session(earlier).terms
    if title is not None:
        said["about"] = {**said.get("about", {}), "title": title}
    elif before is None:
        raise click.UsageError("Missing argument 'TITLE'.")
    dictionary: Sequence[Schema] | None = read_dictionary(schema_files)
    layout = read_layout(parties, same_people=same_people)
    if before is not None and not parties:
        layout = before.layout
    if not as_json:
        letters = letters or Path()
        check_letters(letters, layout)
    expected_keys = read_expected(expected, coordinator.trusted_institutions)
    choice, values = said.pop("evaluation", {}), read_values(params)
    if clusters is not None:
        values["n_clusters"] = int(clusters) if clusters.isdecimal() else clusters
    protocol = protocol or ("dc" if before is None else before.protocol.name)
    if before is not None:
        values = merge_values(earlier_values(before, protocol), values)
        choice = {**earlier_choice(before, protocol, values), **choice}
        dictionary = dictionary or before.dictionary
        keys = before.identities.slots
        expected_keys = {s: keys[s] for s in layout.names if s in keys} | expected_keys
    values = with_match_keys(with_id_patterns(values, id_patterns), match_keys)
    values, runs = read_runs(values, **choice)
    agreed = catalogue.parse_params(protocol, values)
    width = sum(len(schema.fields) for schema in dictionary or ())
    for line in _costs(agreed, layout, runs, rows, width):
        if not as_json:
            say(line, err=True)
    opened = coordinator.create_session(
        params=agreed,
        layout=layout,
        session_id=session_id,
        seed=seed,
        expected=expected_keys,
        dictionary=dictionary,
        preparation=read_preparation(preparation_files, missing, dictionary, before),
        evaluation=runs,
        new_analyst=new_analyst,
        **earlier_sections(before, said),
    )
    hand_over(opened, opened.invite(), letters, addresses, as_json=as_json)
    if not as_json and (needs := describe_quota(len(agreed.linked_by))):
        say(needs, err=True)


def _costs(
    params: Params,
    layout: Layout,
    runs: Evaluation | None,
    rows: int | None,
    columns: int,
) -> Iterator[str]:
    """Yield what a session costs beyond the usual; refuse what it would refuse."""
    from party_sdk import advice

    if rows is not None:
        columns = columns or advice.USUAL_COLUMNS
        advice.check_sizes(params, layout, rows, columns, runs)
    if columns and (rows or runs):
        for sentence in advice.size_warnings(params, layout, rows, columns, runs):
            yield f"warning: {sentence}"
    if runs is not None:
        yield advice.describe_runs(params, layout, runs)


def hand_over(
    opened: CoordinatedSession,
    invitations: Mapping[str, str],
    folder: Path | None,
    addresses: tuple[str, ...] = (),
    *,
    as_json: bool,
) -> None:
    """Print invitations, or write them with their letters; say the risks.

    ``addresses`` are told of the session from then on.
    """
    risks = opened.status().risks
    if folder is not None:
        write_letters(folder, opened.terms, invitations)
    if as_json:
        left = be_told(opened.receivers, addresses)
        told: dict[str, Any] = {"notify": left} if left else {}
        if folder is None:
            told["invitations"] = dict(invitations)
        say(json.dumps({"id": opened.id, **told, "risks": risks}))
        return
    say(f"session {opened.id}")
    for slot, invitation in invitations.items():
        shown = invitation if folder is None else folder / f"{slot}.invitation"
        say(f"{slot}  {shown}")
    if folder is not None:
        say(
            "Hand each party its invitation, which is a secret, and the letter beside it. "
            f"Next, at each: coterie party run {shown} --data TABLE",
            err=True,
        )
    be_told(opened.receivers, addresses)  # last: the invitations are there by now
