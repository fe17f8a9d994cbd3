"""The operator at a terminal, who reads and answers before anything leaves."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.common.errors import RiskNotAccepted
from party_sdk.application.asker import AGREEING, Answer, Asker
from party_sdk.cli.terminal.output import roster_lines, say, show_notes

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import ArrayFacts, Inspection
    from clustering_protocols.terms.risks import Risk
    from clustering_protocols.terms.terms import Terms
    from coterie_pages.models import Message
    from party_sdk.party.kept_mappings import MappingChange
    from party_sdk.party.roster import Roster


@dataclass(frozen=True, slots=True)
class TerminalAsker(Asker):
    """Asks by lines of a terminal.

    has_shown_terms: whether the risks stand above already, in the terms.
    """

    has_shown_terms: bool = False

    @property
    def is_present(self) -> bool:
        """Return whether this is a terminal."""
        return sys.stdin.isatty()

    def note(self, notes: Mapping[str, Any]) -> None:
        """Show what a protocol wants to be read before an answer is sent."""
        show_notes(notes)

    def accept_risks(self, risks: Mapping[str, Risk], terms: str) -> None:
        """Ask once for all; without a terminal print the command that accepts them."""
        del terms
        if not self.has_shown_terms:
            _show_risks(risks)
        if not self.is_present:
            for line in _command_that_accepts(risks):
                say(line, err=True)
            raise RiskNotAccepted(f"{len(risks)}: {', '.join(risks)}.")
        if not click.confirm(f"Do you accept these {len(risks)} risks?", err=True):
            raise RiskNotAccepted(f"You did not accept {', '.join(risks)}.")

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

    def agree(self) -> bool:
        """Ask once for all contributions by which members only agree."""
        say(AGREEING, err=True)
        return click.confirm("Send these, now and in later rounds?", err=True)

    def let_go(self, found: Inspection, terms: Terms | None) -> Answer:
        """Show a contribution, and what its protocol asks about it; ask."""
        if found.asks or terms is None:
            say(found.asks, err=True)
            yes = click.confirm("Send this?", err=True)
            return Answer.ONCE if yes else Answer.NO
        for line in consent_lines(found):
            say(line, err=True)
        for line in inspection_lines(found, terms):
            say(line, err=True)
        said: str = click.prompt(
            "Send it? all: this and the rest of its kind; once: this alone; no",
            type=click.Choice([each.value for each in Answer]),
            default=Answer.NO.value,
            err=True,
        )
        return Answer(said)


def _show_risks(risks: Mapping[str, Risk]) -> None:
    from coterie_pages.terminal_text import risk_lines
    from coterie_pages.views.terms_sheet import show_risks

    say("Not accepted yet:", err=True)
    for line in risk_lines(show_risks(risks)):
        say(line, err=True)


def _command_that_accepts(codes: Iterable[str]) -> Iterator[str]:
    """Yield the command as it was typed, with the options that accept risks by name."""
    options = [f"    --accept-risk {code}" for code in codes]
    words = ["coterie", *map(_quote_word, sys.argv[1:])]
    yield "Anyone who has read them accepts all of them with:"
    yield " \\".join([f"  {' '.join(words)}", ""]).rstrip(" ")
    yield from [f"{option} \\" for option in options[:-1]]
    yield options[-1]


def _quote_word(word: str) -> str:
    return "INVITATION" if "#coterie-" in word else shlex.quote(word)


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
    told = _messages(terms)
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


def _messages(terms: Terms) -> dict[str, Message]:
    from coterie_pages.views.terms_sheet import steps_of

    steps = steps_of(terms)
    answers = [asked.answer for step in steps for asked in step.asked]
    return {m.kind: m for m in (*answers, *(m for s in steps for m in s.sealed))}


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
