"""What follows once a party's people have accepted: it is kept, and the next command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from party_sdk.cli.terminal.output import say
from party_sdk.home.policy import match_keys_at, quota_options

if TYPE_CHECKING:
    from party_sdk.application.asker import Asks
    from party_sdk.home.policy import Policy
    from party_sdk.party.participant import Party


def remember_consent(member: Party, home: Path) -> None:
    """Write what a party accepted into the policy of its home."""
    from clustering_protocols.terms.canonical import digest
    from party_sdk.home.clock import now
    from party_sdk.home.policy_files import policy_file, remember

    text = member.folder.load_identity().terms.encode()
    remember(home, member.terms.risks, digest(text), now())
    say(f"The risks are in {policy_file(home)}.", err=True)


def asks_of(*, confirm: bool) -> Asks:
    """Return what a command asks about, by its option ``--confirm``."""
    from party_sdk.application.asker import Asks

    return Asks.EVERYTHING if confirm else Asks.READABLE


def next_command(
    typed: str, member: Party, policy: Policy, words: Sequence[str]
) -> str:
    """Return the command that takes part, for anyone who has joined with an invitation.

    typed: what stood for the invitation. A file is named again; an invitation itself is
        a secret, and the session is named instead.
    words: options that the next command needs as well.
    """
    terms, slot = member.terms, member.invitation.slot
    place = ["run", *([typed] if typed.startswith("@") else [terms.session, slot])]
    n_keys = match_keys_at(terms, slot)
    quota = quota_options(n_keys, policy.ids_per_row)
    named = shlex.join(["coterie", "party", *place, *words, *quota])
    return f"{named} --data FILE{'' if n_keys else ' --id-column COLUMN'}"
