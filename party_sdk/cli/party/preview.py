"""What a party's people read beside the terms: ids that are compared, and risks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from party_sdk.cli.terminal.output import say
from party_sdk.home.policy import Policy, describe_quota

if TYPE_CHECKING:
    from party_sdk.party.participant import Party


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


def show_risks(member: Party) -> None:
    """Say every risk that the terms bring, in a sentence."""
    from clustering_protocols.session_terms import risks_in

    for code, risk in risks_in(member.terms).items():
        say(f"risk {code}: {risk.sentence}")
