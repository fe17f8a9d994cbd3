"""What a party's people read and accept, each risk by its name, before it joins."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clustering_protocols.errors import RiskNotAccepted
from party_sdk.cli.output import say

if TYPE_CHECKING:
    from coterie_pages.models import TermsSheet
    from party_sdk.cli.party_options import PartyOptions
    from party_sdk.participant import Party
    from party_sdk.policy import Policy


def sheet_for(invitation: str, here: PartyOptions) -> TermsSheet:
    """Return the terms of an invitation in words; nothing but the question is sent."""
    from party_sdk.invitations import Invitation
    from party_sdk.offers import offered_sheet

    text = here.offered_text(invitation)
    return offered_sheet(
        Invitation.parse(invitation), text, here.home, here.institution()
    )


def consent(invitation: str, policy: Policy, here: PartyOptions) -> Policy:
    """Return the policy with every risk of an invitation accepted by its name.

    At a terminal each is asked for. Elsewhere all are told, and the command that accepts
    them. Who has joined is asked no more.

    Raises
    ------
    RiskNotAccepted
        If one is not accepted.
    CoterieError
        If the policy refuses the terms whatever is accepted: nobody is asked then.
    """
    from party_sdk.identities import Acquaintances
    from party_sdk.invitations import Invitation

    policy, has_joined = here.accepted_before(invitation, policy)
    if has_joined:
        return policy
    parsed = Invitation.parse(invitation)
    known = Acquaintances(here.home).read()
    policy.check_inviter(parsed.url, parsed.coordinator, known)
    agreed, _ = here.offered(invitation)
    left = policy.not_accepted(agreed)
    everything = replace(policy, accepted_risks=policy.accepted_risks | left.keys())
    everything.check_terms(agreed)
    if not left:
        return policy
    say("Not accepted yet:", err=True)
    for code, sentence in left.items():
        say(f"  risk {code}: {sentence}", err=True)
    if not sys.stdin.isatty():
        for line in _command_that_accepts(left):
            say(line, err=True)
        raise RiskNotAccepted(f"{len(left)}: {', '.join(left)}.")
    for code in left:
        if not click.confirm(f"Do you accept {code}?", err=True):
            raise RiskNotAccepted(f"You did not accept {code}.")
    return everything


def remember_consent(member: Party, home: Path) -> None:
    """Write what a party accepted into the policy of its home."""
    from clustering_protocols.terms import digest
    from party_sdk.policy_files import policy_file, remember

    text = member.folder.load_identity().terms.encode()
    remember(home, member.terms.risks, digest(text), datetime.now(UTC))
    say(f"The risks are in {policy_file(home)}.", err=True)


def _command_that_accepts(codes: Iterable[str]) -> Iterator[str]:
    """Yield the command as it was typed, with the options that accept risks by name."""
    options = [f"    --accept-risk {code}" for code in codes]
    words = ["coterie", *map(_shown, sys.argv[1:])]
    yield "Whoever has read them accepts all of them with:"
    yield " \\".join([f"  {' '.join(words)}", ""]).rstrip(" ")
    yield from [f"{option} \\" for option in options[:-1]]
    yield options[-1]


def next_command(typed: str, session: str, slot: str, words: Sequence[str]) -> str:
    """Return the command that takes part, for whoever has joined with an invitation.

    Parameters
    ----------
    typed : str
        What stood for the invitation. A file is named again; an invitation itself is a
        secret, and the session is named instead.
    words : sequence of str
        Options that the next command needs as well.
    """
    party = ["run", typed] if typed.startswith("@") else ["resume", session, slot]
    named = shlex.join(["coterie", "party", *party, *words])
    return f"{named} --data FILE --id-column COLUMN"


def _shown(word: str) -> str:
    return "INVITATION" if "#coterie-" in word else shlex.quote(word)
