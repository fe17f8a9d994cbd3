"""The operator at a terminal, who reads and answers before anything leaves."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.common.errors import RiskNotAccepted
from party_sdk.cli.terminal.output import roster_lines, say, show_notes
from party_sdk.party.asker import Asker

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import ArrayFacts, Inspection
    from clustering_protocols.terms.terms import Terms
    from coterie_pages.models import Message, TermsSheet
    from party_sdk.party.kept_mappings import MappingChange
    from party_sdk.party.roster import Roster


class TerminalAsker(Asker):
    """Asks by lines of a terminal."""

    @property
    def is_present(self) -> bool:
        """Return whether this is a terminal."""
        return sys.stdin.isatty()

    def note(self, notes: Mapping[str, Any]) -> None:
        """Show what a protocol wants to be read before an answer is sent."""
        show_notes(notes)

    def accept(self, sheet: TermsSheet) -> None:
        """Show a sheet and ask; without a terminal print the command that accepts it."""
        from coterie_pages.terminal_text import page_lines

        for line in page_lines(sheet):
            say(line, err=True)
        if not self.is_present:
            words = [
                "INVITATION" if "#coterie-" in word else shlex.quote(word)
                for word in sys.argv[1:]
            ]
            say("Anyone who has read this sheet accepts it with:", err=True)
            say(f"  coterie {' '.join(words)} \\", err=True)
            say(f"    --accept {sheet.consent}", err=True)
            raise RiskNotAccepted("Nobody is here to accept the sheet.")
        question = "Do you accept this sheet, and that what it lists is sent?"
        if not click.confirm(question, err=True):
            raise RiskNotAccepted("You did not accept the sheet.")

    def meet(self, roster: Roster, *, is_known: bool) -> bool:
        """Show who takes part; ask, at a terminal, where too few are known."""
        for line in roster_lines(roster):
            say(line, err=True)
        if is_known or not self.is_present:
            return False
        question = "Did each of these members read you this safety number?"
        return click.confirm(question, err=True)

    def change_mapping(self, change: MappingChange) -> bool:
        """Show what differs; ask, at a terminal, whether the new mapping counts."""
        say(change.sentence, err=True)
        if not self.is_present:
            return False
        return click.confirm("Read the table by the new mapping?", err=True)

    def let_go(self, found: Inspection) -> bool:
        """Show a contribution, or what its protocol asks about it; ask."""
        if found.asks:
            say(found.asks, err=True)
            return click.confirm("Send this?", err=True)
        for line in consent_lines(found):
            say(line, err=True)
        question = "Send it, and from now on all that the sheet lists?"
        return click.confirm(question, err=True)


def confirm_units(doubt: str) -> bool:
    """Return whether the operator says yes to new rows in other units."""
    if not sys.stdin.isatty():
        return False
    say(doubt, err=True)
    return click.confirm("Label them all the same?", err=True)


def consent_lines(found: Inspection) -> Iterator[str]:
    """Yield what leaves in plain words, and what somebody can read of it."""
    from party_sdk.cli.terminal.output import align_columns

    for part in found.parts:
        yield f"To {part.receiver}: {part.meaning}"
    yield f"{found.n_bytes:,} bytes."
    for table in found.tables:
        yield f"{table.caption}:"
        yield from align_columns([table.columns, *table.rows])


def inspection_lines(found: Inspection, terms: Terms) -> Iterator[str]:
    """Yield what is in a contribution, each part in the words of the terms sheet."""
    from coterie_pages.views.terms_sheet import steps_of

    steps = steps_of(terms)
    answers = [asked.answer for step in steps for asked in step.asked]
    sealed = [message for step in steps for message in step.sealed]
    told = {message.kind: message for message in (*answers, *sealed)}
    yield f"stage {found.stage}, round {found.round}, attempt {found.attempt}:"
    yield f"  to the analyst, {found.n_bytes:,} bytes: {_sentence(found.kind, told)}"
    for name, value in found.values.items():
        yield f"    {name}: {json.dumps(value)}"
    for array in found.arrays:
        yield f"    {_array(array)}"
    for envelope in found.envelopes:
        yield (
            f"  sealed for {envelope.receiver}, {envelope.n_bytes:,} bytes that the "
            f"analyst cannot open: {_sentence(envelope.kind, told)}"
        )
        message = told.get(envelope.kind)
        for item in () if message is None else message.items:
            yield f"    {item.name}: {item.form}"


def _sentence(kind: str, told: dict[str, Message]) -> str:
    message = told.get(kind)
    if message is None:
        return kind
    what = message.sentence or "a completion message" * (not message.items)
    return f"{kind}{f' – {what}' if what else ''}"


def _array(array: ArrayFacts) -> str:
    shape = " × ".join(map(str, array.shape))
    between = "empty"
    if array.minimum is not None and array.maximum is not None:
        between = f"from {array.minimum:.4g} to {array.maximum:.4g}"
    size = f"{array.n_bytes:,} bytes"
    return f"array {array.name}: {shape} {array.dtype}, {size}, {between}"
