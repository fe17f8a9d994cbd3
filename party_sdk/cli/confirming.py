"""What an operator reads and answers before a contribution is sent."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from clustering_protocols.house import OTHER_UNITS
from party_sdk.cli.output import say

if TYPE_CHECKING:
    from clustering_protocols.terms import Terms
    from coterie_pages.models import Message
    from party_sdk.inspection import ArrayFacts, Inspection
    from party_sdk.memory import PartyFolder


@dataclass
class Asking:
    """Asks before each contribution; once for all by which members only agree.

    Attributes
    ----------
    folder : PartyFolder, optional
        Where it is given, nothing is asked but what the protocol asks about, and what
        follows a contribution that was refused.
    """

    terms: Terms
    folder: PartyFolder | None = None
    has_agreed: bool = False

    def __call__(self, found: Inspection) -> bool:
        """Show a contribution; return whether the operator lets it go."""
        asks_for_all = self.folder is None or self.folder.is_held
        if not (found.asks or asks_for_all):
            return True
        if found.asks or not found.only_agrees:
            for line in inspection_lines(found, self.terms) if asks_for_all else ():
                say(line, err=True)
            if found.asks:
                say(found.asks, err=True)
            return click.confirm("Send this?", err=True)
        if not self.has_agreed:
            say(
                "Members sign the terms, exchange keys, and compare keyed digests of "
                "ids and of the names of columns. No value of your table is in that, "
                "and no id that can be read.",
                err=True,
            )
            question = "Send these, now and in later rounds?"
            self.has_agreed = click.confirm(question, err=True)
        return self.has_agreed


def agreeing(choices: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return what says yes to new rows in other units: a choice, or who is asked."""

    def agree(doubt: str) -> bool:
        if choices.get(OTHER_UNITS):
            return True
        if not sys.stdin.isatty():
            return False
        say(doubt, err=True)
        return click.confirm("Label them all the same?", err=True)

    return agree


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
    from coterie_pages.steps import steps_of

    steps = steps_of(terms)
    answers = [asked.answer for step in steps for asked in step.asked]
    return {m.kind: m for m in (*answers, *(m for s in steps for m in s.sealed))}


def _sentence(kind: str, told: dict[str, Message]) -> str:
    message = told.get(kind)
    if message is None:
        return kind
    what = message.sentence or "nothing but that it is done" * (not message.items)
    return f"{kind}{f' – {what}' if what else ''}"


def _array(array: ArrayFacts) -> str:
    shape = " × ".join(map(str, array.shape))
    between = "empty"
    if array.minimum is not None and array.maximum is not None:
        between = f"from {array.minimum:.4g} to {array.maximum:.4g}"
    size = f"{array.n_bytes:,} bytes"
    return f"array {array.name}: {shape} {array.dtype}, {size}, {between}"
