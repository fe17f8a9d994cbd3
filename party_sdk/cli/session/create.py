"""`coterie session create`: open a session, and invite its parties."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click

from clustering_protocols.terms.captions import HARMONISE
from party_sdk.cli.options import (
    FILE,
    FOLDER,
    SEED,
    Entropy,
    Missing,
    Param,
    Preparations,
    Rows,
)
from party_sdk.cli.parameters import (
    CaptionOptions,
    argument,
    command,
    option,
    option_for_caption,
)
from party_sdk.cli.terminal.output import Output, say
from party_sdk.coordinator.letters import prepare_letter_folder, write_letters
from party_sdk.coordinator.option_parsing import (
    add_id_patterns,
    add_match_keys,
    earlier_params,
    earlier_run_choice,
    earlier_sections,
    merge_values,
    parse_layout,
    parse_runs,
    parse_values,
    read_dictionary,
    read_expected_keys,
    read_preparation,
)
from party_sdk.home.policy import explain_quota

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clustering_protocols.contract import Params
    from clustering_protocols.terms.schema import Schema
    from clustering_protocols.terms.sections import Evaluation
    from clustering_protocols.terms.terms import Layout
    from party_sdk.coordinator.coordinator import Coordinator
    from party_sdk.coordinator.session import CoordinatedSession

Invitations: TypeAlias = Annotated[
    Path | None,
    option(
        "Folder for invitations and letters (Markdown) to their parties; by default the "
        "current one. With --json, invitations are printed unless a folder is named.",
        "--invitations",
        type=FOLDER,
    ),
]


@command(
    common="from protocol clusters party same-people expect purpose schema missing profiles "
    "help-all"
)
def create(
    coordinator: "Coordinator",
    title: Annotated[str | None, argument()] = None,
    *,
    from_session: Annotated[
        str | None,
        option(
            "An earlier session of this home: its terms, and the keys of slots that stay, "
            "are the defaults of all options.",
            "--from",
            metavar="SESSION",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        option(
            "Name of a protocol, e.g. llf; see 'coterie advise'. By default dc.",
        ),
    ] = None,
    params: Param = (),
    id_patterns: Annotated[
        tuple[str, ...],
        option(
            "What ids look like, e.g. KV-99999999: 9 is a digit, A a letter. Once for "
            "each id column; 'coterie table --id-patterns' drafts it. Each party "
            "compares its ids at home.",
            "--id-pattern",
            metavar="PATTERN",
        ),
    ] = (),
    match_keys: Annotated[
        tuple[str, ...],
        option(
            "Columns that identify a person if there is no common id, e.g. 'surname | "
            "soundex + birth_date | date'. Once for each key, the most certain first; "
            "@FILE reads one per line, as 'coterie table --link' prints them.",
            "--match-key",
            metavar="KEY",
        ),
    ] = (),
    clusters: Annotated[
        str | None,
        option("How many clusters: 3, or 2..6 to compare several.", metavar="NUMBERS"),
    ] = None,
    parties: Annotated[
        tuple[str, ...],
        option(
            "A party; repeat it for each. Parties hold different people. Positions, "
            "from 1, instead give a party's group of people (ROW) and of variables "
            "(COLUMN); the title is its name for readers.",
            "--party",
            metavar="NAME[=ROW,COLUMN[,TITLE]]",
        ),
    ] = (),
    same_people: Annotated[
        bool, option("The parties hold different variables of the same people.")
    ] = False,
    expected: Annotated[
        tuple[str, ...],
        option(
            "The only institution that may take a slot: the file of its card, or its name "
            "if you trust it. Slots without one are open to anyone who has their "
            "invitation.",
            "--expect",
            metavar="SLOT=CARD",
        ),
    ] = (),
    session_id: Annotated[
        str | None,
        option("Id of the session; made from the title by default.", "--id"),
    ] = None,
    seed: Annotated[
        int | None,
        option("Seed of the analyst's random starts; drawn by default.", type=SEED),
    ] = None,
    schema: Annotated[
        tuple[Path, ...],
        option(
            "The data dictionary of the columns, by which parties find them; once for "
            "each column group, in their order.",
            type=FILE,
        ),
    ] = (),
    rows: Rows = None,
    preparations: Preparations = (),
    missing: Missing = None,
    harmonise: Annotated[str | None, option_for_caption(HARMONISE)] = None,
    sections: Annotated[
        Mapping[str, Any], CaptionOptions(("words", "limits", "runs", "results"))
    ],
    new_analyst: Annotated[
        bool,
        option("The analyst at this address was set up again and has a new key."),
    ] = False,
    letters: Invitations = None,
    entropy: Entropy = None,
    as_json: bool,
) -> Output:
    """Open a session, and write an invitation for each party.

    Send each party its invitation through a channel that the analyst cannot read. With
    --from, an earlier session is repeated with new invitations.
    """
    from clustering_protocols import catalogue
    from clustering_protocols.terms.request_fields import read_sections

    fields = read_sections(lambda caption: sections.get(caption.option))
    coordinator.entropy = entropy
    earlier_terms = (
        None if from_session is None else coordinator.session(from_session).terms
    )
    if title is not None:
        fields["about"] = {**fields.get("about", {}), "title": title}
    elif earlier_terms is None:
        raise click.UsageError("Missing argument 'TITLE'.")
    dictionary: Sequence[Schema] | None = read_dictionary(schema)
    layout = parse_layout(parties, same_people=same_people)
    if earlier_terms is not None and not parties:
        layout = earlier_terms.layout
    if not as_json:
        letters = letters or Path()
    if letters is not None:
        prepare_letter_folder(letters, layout.names)
    expected_keys = read_expected_keys(expected, coordinator.trusted_institutions)
    choice, values = fields.pop("evaluation", {}), parse_values(params)
    if clusters is not None:
        values["n_clusters"] = int(clusters) if clusters.isdecimal() else clusters
    protocol = protocol or (
        "dc" if earlier_terms is None else earlier_terms.protocol.name
    )
    if earlier_terms is not None:
        values = merge_values(earlier_params(earlier_terms, protocol), values)
        choice = {**earlier_run_choice(earlier_terms, protocol, values), **choice}
        dictionary = dictionary or earlier_terms.dictionary
        keys = earlier_terms.identities.slots
        expected_keys = {s: keys[s] for s in layout.names if s in keys} | expected_keys
    values = add_match_keys(add_id_patterns(values, id_patterns), match_keys)
    values, runs = parse_runs(values, **choice)
    protocol_params = catalogue.parse_params(protocol, values)
    width = sum(len(schema.fields) for schema in dictionary or ()) or None
    for line in _cost_lines(protocol_params, layout, runs, rows, width):
        if not as_json:
            say(line, err=True)
    created = coordinator.create_session(
        params=protocol_params,
        layout=layout,
        session_id=session_id,
        seed=seed,
        expected=expected_keys,
        dictionary=dictionary,
        preparation=read_preparation(
            preparations, missing, dictionary, earlier_terms, harmonise
        ),
        evaluation=runs,
        new_analyst=new_analyst,
        **earlier_sections(earlier_terms, fields),
    )
    invitations = created.invite()
    needs = explain_quota(len(protocol_params.linking_keys))
    risks = created.status().risks
    if letters is not None:
        write_letters(letters, created.terms, invitations)
    document: dict[str, Any] = {"id": created.id, "risks": risks}
    if letters is None:
        document["invitations"] = invitations
    return Output(document, _opened_lines(created, invitations, letters, needs))


def _cost_lines(
    params: "Params",
    layout: "Layout",
    runs: "Evaluation | None",
    rows: int | None,
    columns: int | None,
) -> "Iterator[str]":
    """Yield warnings about a session's size; raise if the session would refuse it."""
    from party_sdk import advice

    advice.check_sizes(params, layout, rows, columns, runs)
    if rows or (columns and runs):
        for sentence in advice.size_warnings(params, layout, rows, columns, runs):
            yield f"warning: {sentence}"
    if runs is not None:
        yield advice.describe_cost_of_runs(params, layout, runs)


def _opened_lines(
    created: "CoordinatedSession",
    invitations: Mapping[str, str],
    folder: Path | None,
    needs: str,
) -> "Iterator[str]":
    yield f"session {created.id}"
    for slot, invitation in invitations.items():
        location = invitation if folder is None else folder / f"{slot}.invitation"
        yield f"{slot}  {location}"
    if folder is not None:
        say(
            "Give each party its invitation, which is a secret, and the letter beside "
            f"it. Next, at each: coterie party run {location} --data TABLE",
            err=True,
        )
    if needs:
        say(needs, err=True)
