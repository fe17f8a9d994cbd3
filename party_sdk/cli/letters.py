"""Invitations as files, and a letter with each: what a coordinator hands over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from party_sdk.cli.output import say

if TYPE_CHECKING:
    from clustering_protocols.terms import Terms
    from party_sdk.coordinator import CoordinatedSession

invitations_option = click.option(
    "--invitations",
    "letters",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each invitation into a file of its own in this folder, with a letter "
    "(Markdown) to its party, instead of printing it.",
)

_LETTER: Final = """\
# {title}

You are invited to take part as **{place}**.

{facts}
- Please join within {days} days.

With this letter comes the file `{file}`. It is a secret: whoever has it can sit in your
place. It should not reach you by way of the analyst.

1. Read who learns what, and every risk. Nothing of yours is read or sent:

       coterie party terms @{file}

2. See whether your table fits, still without sending anything:

       coterie party check @{file} --data TABLE --id-column ID

3. Take part. Your rows stay with you:

       coterie party run @{file} --data TABLE --id-column ID

If you would rather not, `coterie party decline` tells the coordinator why.
"""


def hand_over(
    opened: CoordinatedSession,
    invitations: Mapping[str, str],
    folder: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print invitations, or write them with their letters; say the risks."""
    risks = opened.status().risks
    if folder is not None:
        write_letters(folder, opened.terms, invitations)
    if as_json:
        told = {} if folder is not None else {"invitations": dict(invitations)}
        say(json.dumps({"id": opened.id, **told, "risks": risks}))
        return
    say(f"session {opened.id}")
    for slot, invitation in invitations.items():
        shown = invitation if folder is None else folder / f"{slot}.invitation"
        say(f"{slot}  {shown}")
    for code in risks:
        say(f"Each party has to accept the risk {code}.", err=True)


def write_letters(folder: Path, terms: Terms, invitations: Mapping[str, str]) -> None:
    """Write ``SLOT.invitation`` and ``SLOT.md`` for each, for this user's eyes."""
    from party_sdk._files import private_folder, write_private

    private_folder(folder)
    for slot, invitation in invitations.items():
        write_private(folder / f"{slot}.invitation", f"{invitation}\n".encode())
        write_private(folder / f"{slot}.md", letter(terms, slot).encode())


def letter(terms: Terms, slot: str) -> str:
    """Return a letter to the party of a slot; it holds no secret."""
    about, place = terms.about, terms.layout.slot(slot)
    told = {
        "Purpose": about.purpose,
        "Legal basis": about.legal_basis,
        "Questions": about.contact,
        "Method": f"{terms.protocol.name}, with {len(terms.layout.slots)} parties",
    }
    facts = "\n".join(f"- {name}: {text}" for name, text in told.items() if text)
    return _LETTER.format(
        title=terms.title,
        place=place.title or slot,
        facts=facts,
        days=f"{terms.deadlines.recruiting / 86_400:.3g}",
        file=f"{slot}.invitation",
    )
