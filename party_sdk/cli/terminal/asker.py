"""Ask the operator questions at a terminal."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.common.errors import RiskNotAccepted
from party_sdk.cli.terminal.output import align_columns, roster_lines, say, show_notes
from party_sdk.party.asker import Asker

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Inspection
    from clustering_protocols.terms.terms import Terms
    from coterie_pages.models import Message, TermsSheet
    from party_sdk.party.roster import Roster
    from party_sdk.party.stored_mappings import MappingChange


class TerminalAsker(Asker):
    """Asks the operator at a terminal, and refuses if standard input is not a terminal."""

    @property
    def is_present(self) -> bool:
        """Return whether standard input is a terminal."""
        return sys.stdin.isatty()

    def show_notes(self, notes: Mapping[str, Any]) -> None:
        """Show the protocol's notes on an answer before it is sent."""
        show_notes(notes)

    def accept(self, sheet: TermsSheet) -> None:
        """Show a terms sheet, and ask the operator for consent.

        If standard input is not a terminal, print the command that accepts the sheet.

        Raises RiskNotAccepted unless the operator consents.
        """
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

    def confirm_members(self, roster: Roster, *, is_known: bool) -> bool:
        """Show the members; at a terminal, ask to confirm them if too few are known."""
        for line in roster_lines(roster):
            say(line, err=True)
        if is_known or not self.is_present:
            return False
        question = "Did each of these members read you this safety number?"
        return click.confirm(question, err=True)

    def confirm_mapping(self, change: MappingChange) -> bool:
        """Show how the mapping changed. At a terminal, ask whether to use the new one."""
        say(change.sentence, err=True)
        if not self.is_present:
            return False
        return click.confirm("Read the table with the new mapping?", err=True)

    def approve(self, inspection: Inspection) -> bool:
        """Show a contribution, or its protocol's question, and ask whether to send it."""
        if inspection.asks:
            say(inspection.asks, err=True)
            return click.confirm("Send this?", err=True)
        for part in inspection.parts:
            say(f"To {part.receiver}: {part.meaning}", err=True)
        say(f"{inspection.n_bytes:,} bytes.", err=True)
        for table in inspection.tables:
            say(f"{table.caption}:", err=True)
            for line in align_columns([table.columns, *table.rows]):
                say(line, err=True)
        question = "Send it, and from now on everything that the sheet lists?"
        return click.confirm(question, err=True)


def confirm_units(doubt: str) -> bool:
    """Ask whether to label new rows that seem to be in different units."""
    if not sys.stdin.isatty():
        return False
    say(doubt, err=True)
    return click.confirm("Label them anyway?", err=True)


def inspection_lines(inspection: Inspection, terms: Terms) -> Iterator[str]:
    """Yield the parts of a contribution, described in the words of the terms sheet."""
    from coterie_pages.views.terms_sheet import steps_of

    steps = steps_of(terms)
    answers = [task.answer for step in steps for task in step.asked]
    sealed = [message for step in steps for message in step.sealed]
    messages = {message.kind: message for message in (*answers, *sealed)}
    yield f"stage {inspection.stage}, round {inspection.round}, attempt {inspection.attempt}:"
    yield f"  to the analyst, {inspection.n_bytes:,} bytes: {_describe_message(inspection.kind, messages)}"
    for name, value in inspection.values.items():
        yield f"    {name}: {json.dumps(value)}"
    for array in inspection.arrays:
        shape, extent = " × ".join(map(str, array.shape)), "empty"
        if array.minimum is not None and array.maximum is not None:
            extent = f"from {array.minimum:.4g} to {array.maximum:.4g}"
        yield (
            f"    array {array.name}: {shape} {array.dtype}, {array.n_bytes:,} bytes, "
            f"{extent}"
        )
    for envelope in inspection.envelopes:
        yield (
            f"  sealed for {envelope.receiver}, {envelope.n_bytes:,} bytes that the "
            f"analyst cannot open: {_describe_message(envelope.kind, messages)}"
        )
        message = messages.get(envelope.kind)
        for item in () if message is None else message.items:
            yield f"    {item.name}: {item.form}"


def _describe_message(kind: str, messages: dict[str, Message]) -> str:
    message = messages.get(kind)
    if message is None:
        return kind
    sentence = message.sentence or "a completion message" * (not message.items)
    return f"{kind}{f' – {sentence}' if sentence else ''}"
