"""`coterie session repeat`: an earlier session's terms again, with changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from party_sdk.cli.options.common import (
    SEED,
    entropy_option,
    param_option,
    pass_coordinator,
    read_entropy,
    schema_option,
)
from party_sdk.cli.options.completion import opened_argument, protocol_names
from party_sdk.cli.session.letters import hand_over, invitations_option
from party_sdk.cli.session.notify import notify_option
from party_sdk.cli.terminal.output import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clustering_protocols.terms.schema import Role
    from party_sdk.coordinator.coordinator import Coordinator

_notify_option = notify_option("slow parties")


@click.command()
@opened_argument
@click.option("--title", help="Of the new session; that of the old one by default.")
@click.option(
    "--without",
    multiple=True,
    metavar="SLOT",
    help="A party that does not take part again; may be given several times.",
)
@click.option(
    "--with-slot",
    "slots",
    multiple=True,
    metavar="NAME=ROW,COLUMN[,TITLE]",
    help="A party that takes part for the first time, and its place, counted from 1.",
)
@click.option(
    "--expect",
    "expected",
    multiple=True,
    metavar="SLOT=CARD",
    help="Who alone may sit at a new slot: a card, or a name that you know.",
)
@click.option(
    "--without-field",
    "left_out",
    multiple=True,
    metavar="NAME",
    help="A variable that is left out from now on; tables may still hold it.",
)
@click.option(
    "--with-field",
    "clustered",
    multiple=True,
    metavar="NAME",
    help="A variable that was only described and is clustered this time. A new one "
    "comes with a dictionary (--schema).",
)
@click.option(
    "--describe-field",
    "described",
    multiple=True,
    metavar="NAME",
    help="A variable of the dictionary that only profiles describe this time.",
)
@schema_option
@click.option(
    "--protocol",
    shell_complete=protocol_names,
    help="Another method; parameters that both methods have are kept.",
)
@param_option
@click.option(
    "--same-clusters",
    is_flag=True,
    help="Start from the centroids that the earlier session of llf published: clusters "
    "keep their numbers.",
)
@click.option("--id", "new_id", help="Id of the new session.")
@click.option(
    "--seed", type=SEED, help="Seed of the analyst's random starts; drawn by default."
)
@invitations_option
@_notify_option
@entropy_option
@json_option
@pass_coordinator
def repeat(
    coordinator: Coordinator,
    session_id: str,
    title: str | None,
    without: tuple[str, ...],
    slots: tuple[str, ...],
    expected: tuple[str, ...],
    left_out: tuple[str, ...],
    clustered: tuple[str, ...],
    described: tuple[str, ...],
    schema_files: tuple[Path, ...],
    protocol: str | None,
    params: tuple[str, ...],
    new_id: str | None,
    seed: int | None,
    letters: Path | None,
    addresses: tuple[str, ...],
    entropy_file: Path | None,
    *,
    same_clusters: bool,
    as_json: bool,
) -> None:
    """Open a session with an earlier one's terms.

    Last quarter's, for example, if it was opened from this home. Terms, parties and keys
    are the same, but for what you change: parties, variables, parameters (--param
    n_clusters=5), the method. The invitations are new.
    """
    from coterie_pages.views.result_views import n_clusters_of
    from party_sdk.coordinator.option_parsing import (
        read_dictionary,
        read_expected,
        read_slots,
        read_values,
    )
    from party_sdk.coordinator.repetition import Changes, given_starts, like

    coordinator.entropy = read_entropy(entropy_file)
    earlier, values = coordinator.session(session_id), read_values(params)
    if same_clusters:
        number = n_clusters_of(earlier.terms, earlier.status())
        values = {**given_starts(earlier.summary(), number or 0), **values}
        values.setdefault("n_clusters", number)
    changes = Changes(
        slots=read_slots(slots),
        expected=read_expected(expected, coordinator.acquaintances),
        roles=_roles(left_out, clustered, described),
        dictionary=read_dictionary(schema_files),
        protocol=protocol,
        params=values,
    )
    asked = like(earlier.terms, without, changes)
    if title is not None:
        asked["about"] = asked["about"].model_copy(update={"title": title})
    opened = coordinator.create_session(**asked, session_id=new_id, seed=seed)
    hand_over(opened, opened.invite(), letters, addresses, as_json=as_json)


def _roles(
    left_out: Sequence[str], clustered: Sequence[str], described: Sequence[str]
) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    kinds: tuple[tuple[Role, Sequence[str]], ...] = (
        ("leave-out", left_out),
        ("cluster", clustered),
        ("describe", described),
    )
    for role, names in kinds:
        for name in names:
            if name in roles:
                raise click.UsageError(f"{name!r} has two roles: name it once.")
            roles[name] = role
    return roles
