"""A drafted mapping at a terminal: what is certain, what is a guess and what is open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.options.terms import read_terms_file
from party_sdk.cli.terminal.output import say
from party_sdk.results.output_files import keep_others, try_outputs, write_whole

if TYPE_CHECKING:
    from clustering_protocols.terms.schema import Schema
    from party_sdk.tables import How
    from party_sdk.tables.mapping import Limit
    from party_sdk.tables.proposals import ColumnProposal, LevelProposal, Proposal

_MOST_CELLS = 20


def read_dictionary(how: How, terms: Path | None, slot: str | None) -> Schema:
    """Return the dictionary that a table is to fit: of terms, or of ``--schema``."""
    if (how.schema is None) == (terms is None):
        raise click.UsageError("Give --schema FILE, or --terms FILE.")
    if terms is None:
        if how.schema is None:
            raise click.UsageError("Give --schema FILE.")
        return how.schema
    agreed, own = read_terms_file(terms, slot)
    found = agreed.dictionary_of(own)
    if found is None:
        raise click.UsageError("These terms have no dictionary: give --schema FILE.")
    return found


def propose_mapping(
    file: str,
    how: How,
    schema: Schema,
    out: Path | None,
    limits: Limit | None,
    *,
    force: bool,
    as_json: bool,
) -> Proposal:
    """Draft a mapping, write it where a file is named, and print how certain it is."""
    from party_sdk.tables.mapping import write_mapping
    from party_sdk.tables.proposals import propose

    if out is not None:
        try_outputs([out], Path(file), force=force)
        keep_others([out], None, force=force)
    found = propose(file, how, schema, limits)
    if out is not None:
        write_whole(write_mapping(found.to_mapping()), out)
    if as_json:
        say(found.model_dump_json())
        return found
    for line in proposal_lines(found):
        say(line)
    if out is None:
        say("")
        for line in write_mapping(found.to_mapping()).decode().splitlines():
            say(line)
    else:
        say(f"A draft in {out}: read it, complete it, then read the table with it.")
    return found


def proposal_lines(found: Proposal) -> Iterator[str]:
    """Yield what is proposed, with cells: for the operator's own screen."""
    yield f"{found.file or 'table'}: {found.rows} rows"
    for certainty in ("certain", "guess", "open"):
        lines = list(_lines_of(found, certainty))
        if lines:
            yield f"{certainty}:"
            yield from lines
    for name, cells in found.totals.items():
        yield f"left out as totals: {', '.join(map(repr, cells))} in {name!r}"
    if found.copies:
        shown = ", ".join(map(str, found.copies[:20]))
        more = f" and {len(found.copies) - 20} more" * (len(found.copies) > 20)
        yield f"left out as copies of earlier rows: {shown}{more}"
    if found.unused:
        more = f" and {len(found.unused) - 20} more" * (len(found.unused) > 20)
        yield f"not used: {', '.join(map(repr, found.unused[:20]))}{more}"


def _lines_of(found: Proposal, certainty: Any) -> Iterator[str]:
    for column in found.columns:
        if column.source is None:
            if certainty == "open":
                near = ", ".join(map(repr, column.candidates[:3]))
                yield f"  {column.name}: no column is near (perhaps {near})"
            continue
        if column.certainty == certainty:
            yield f"  {column.name} from {column.source!r}: {column.why}"
        if column.convert and certainty == "guess":
            yield f"  {column.name}: unit by its name, {column.convert}"
        if column.thousands and certainty == "guess":
            yield f"  {column.name}: {column.thousands!r} parts thousands"
        if column.dates and certainty == "guess":
            yield f"  {column.name}: dates are {', '.join(column.dates)}"
        cells = [c for c in column.cells if not c.is_same]
        cells = [c for c in cells if _certainty_of(column, c) == certainty]
        for cell in cells[:_MOST_CELLS]:
            yield f"  {column.name}: {_describe(column, cell)}"
        if len(cells) > _MOST_CELLS:
            yield f"  {column.name}: {len(cells) - _MOST_CELLS} more"


def _certainty_of(column: ColumnProposal, cell: LevelProposal) -> str:
    """Return how certain a cell is: a limit by a rule that somebody said is certain."""
    is_said = cell.is_limit and column.limits is not None
    return "certain" if is_said else cell.certainty


def _describe(column: ColumnProposal, cell: LevelProposal) -> str:
    rows = "1 row" if cell.count == 1 else f"{cell.count} rows"
    if cell.is_limit:
        said = "--limits half, value or missing?"
        if column.limits is not None:
            said = f'limits = "{column.limits}"'
        return f"{cell.text!r} ({rows}) is a limit: {said}"
    if cell.is_missing:
        return f"{cell.text!r} ({rows}) is no value"
    if cell.level is not None:
        return f"{cell.text!r} ({rows}) is {cell.level!r}"
    known = f" of {', '.join(map(repr, column.levels[:8]))}" if column.levels else ""
    what = "which level" if column.levels else "no number; which one, or none"
    return f"{cell.text!r} ({rows}): {what}{known}?"
