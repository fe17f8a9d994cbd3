"""The operator at a terminal, who reads and answers before anything leaves."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.common.errors import RiskNotAccepted
from party_sdk.application.asker import AGREEING, Asker
from party_sdk.cli.terminal.confirmation import inspection_lines
from party_sdk.cli.terminal.output import roster_lines, say, show_notes

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Inspection
    from clustering_protocols.terms.terms import Terms
    from party_sdk.party.kept_mappings import MappingChange
    from party_sdk.party.roster import Roster


class TerminalAsker(Asker):
    """Asks by lines of a terminal."""

    def __init__(self) -> None:
        self._has_agreed = False

    @property
    def is_present(self) -> bool:
        """Return whether this is a terminal."""
        return sys.stdin.isatty()

    def note(self, notes: Mapping[str, Any]) -> None:
        """Show what a protocol wants to be read before an answer is sent."""
        show_notes(notes)

    def accept_risks(self, risks: Mapping[str, str], terms: str) -> None:
        """Ask for each risk; without a terminal print the command that accepts them."""
        del terms
        say("Not accepted yet:", err=True)
        for code, sentence in risks.items():
            say(f"  risk {code}: {sentence}", err=True)
        if not self.is_present:
            for line in _command_that_accepts(risks):
                say(line, err=True)
            raise RiskNotAccepted(f"{len(risks)}: {', '.join(risks)}.")
        for code in risks:
            if not click.confirm(f"Do you accept {code}?", err=True):
                raise RiskNotAccepted(f"You did not accept {code}.")

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
        if not self._has_agreed:
            say(AGREEING, err=True)
            question = "Send these, now and in later rounds?"
            self._has_agreed = click.confirm(question, err=True)
        return self._has_agreed

    def let_go(self, found: Inspection, terms: Terms | None) -> bool:
        """Show a contribution, and what its protocol asks about it; ask."""
        for line in () if terms is None else inspection_lines(found, terms):
            say(line, err=True)
        if found.asks:
            say(found.asks, err=True)
        return click.confirm("Send this?", err=True)


def _command_that_accepts(codes: Iterable[str]) -> Iterator[str]:
    """Yield the command as it was typed, with the options that accept risks by name."""
    options = [f"    --accept-risk {code}" for code in codes]
    words = ["coterie", *map(_quote_word, sys.argv[1:])]
    yield "Whoever has read them accepts all of them with:"
    yield " \\".join([f"  {' '.join(words)}", ""]).rstrip(" ")
    yield from [f"{option} \\" for option in options[:-1]]
    yield options[-1]


def _quote_word(word: str) -> str:
    return "INVITATION" if "#coterie-" in word else shlex.quote(word)
