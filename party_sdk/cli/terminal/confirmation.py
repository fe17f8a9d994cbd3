"""What an operator reads and answers before a contribution is sent."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from party_sdk.cli.terminal.output import say

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import ArrayFacts, Inspection
    from clustering_protocols.terms.terms import Terms
    from coterie_pages.models import Message


def confirm_units(doubt: str) -> bool:
    """Return whether the operator says yes to new rows in other units."""
    if not sys.stdin.isatty():
        return False
    say(doubt, err=True)
    return click.confirm("Label them all the same?", err=True)


def consent_lines(found: Inspection) -> Iterator[str]:
    """Yield what leaves in plain words, and what somebody can read of it."""
    from party_sdk.cli.terminal.text_tables import align_columns

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
    from coterie_pages.views.steps import steps_of

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
