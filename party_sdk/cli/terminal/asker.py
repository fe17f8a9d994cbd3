"""The operator at a terminal, who reads and answers before anything leaves."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.common.errors import RiskNotAccepted
from party_sdk.application.asker import AGREEING, Answer, Asker
from party_sdk.cli.terminal.confirmation import consent_lines, inspection_lines
from party_sdk.cli.terminal.output import roster_lines, say, show_notes

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Inspection
    from clustering_protocols.terms.risks import Risk
    from clustering_protocols.terms.terms import Terms
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
    from coterie_pages.views.risks import show_risks

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
