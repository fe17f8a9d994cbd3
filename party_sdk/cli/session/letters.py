"""Invitations in a terminal, or as files with a letter to each party."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.session.notify import be_told
from party_sdk.cli.terminal.output import say
from party_sdk.coordinator.letters import write_letters

if TYPE_CHECKING:
    from party_sdk.coordinator.session import CoordinatedSession

invitations_option = click.option(
    "--invitations",
    "letters",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each invitation into a file of its own in this folder, with a letter "
    "(Markdown) to its party, instead of printing it.",
)


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
    for code in risks:
        say(f"Each party has to accept the risk {code}.", err=True)
    be_told(opened.receivers, addresses)  # last: the invitations are there by now
