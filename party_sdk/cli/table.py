"""`coterie table`: how a file is read, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from party_sdk.cli.options.tables import unmapped_reading_options
from party_sdk.cli.options.terms import read_terms_file
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.output_files import force_option
from party_sdk.home.policy import describe_quota
from party_sdk.results.output_files import keep_others, try_outputs, write_whole

if TYPE_CHECKING:
    from clustering_protocols.terms.schema import Schema
    from party_sdk.tables import CheckReport, How
    from party_sdk.tables.drafts import ColumnProposal, LevelProposal, Proposal
    from party_sdk.tables.report import KeyPreview

INPUT_UNUSABLE = 5
_MOST_CELLS = 20
CELLS: Final[Any] = {"cells": True, "match_keys": {"__all__": {"first"}}}
"""The parts of a report that are values of cells."""


@click.command()
@click.argument("file")
@unmapped_reading_options
@click.option(
    "--mapping",
    "mapping_file",
    type=click.Path(path_type=Path),
    help="A file that says how the table becomes what the dictionary describes. With "
    "--propose: where to write the draft.",
)
@click.option(
    "--propose",
    is_flag=True,
    help="Draft a mapping against --schema or --terms: names, levels, units, codes.",
)
@click.option(
    "--link",
    "links",
    is_flag=True,
    help="Propose match keys, by which rows are linked where there is no common id.",
)
@click.option(
    "--terms",
    "terms_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --propose: the terms of a session, whose dictionary counts.",
)
@click.option("--slot", help="With --terms of several slots: yours.")
@force_option
@json_option
@click.pass_context
def table(
    context: click.Context,
    file: str,
    how: How,
    mapping_file: Path | None,
    terms_file: Path | None,
    slot: str | None,
    *,
    propose: bool,
    links: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Say how FILE is read, or what is wrong with it and where. Nothing is sent.

    With --schema: whether it is what the dictionary describes. Ends with 5 if there are
    problems, and without --schema if there are missing values or words: 'run' refuses
    them unless the terms describe them.

    With --propose: draft a mapping, and say what in it is certain, a guess or open.
    Ends with 5 if something is open.

    With --link: propose match keys for 'session create', of the columns that name people.
    Of each key you read how many rows have a value, and how many of these share none.
    """
    if links:
        _propose_match_keys(file, how, mapping_file, as_json=as_json)
        return
    if propose:
        schema = _read_dictionary(how, terms_file, slot)
        found = _propose_mapping(
            file, how, schema, mapping_file, force=force, as_json=as_json
        )
        context.exit(INPUT_UNUSABLE if found.n_open else 0)
    if terms_file is not None or slot is not None or force:
        raise click.UsageError("--terms, --slot and --force go with --propose.")
    from clustering_protocols.shared_stages.alignment.cell_values import unnamed_warning
    from party_sdk.tables import examine
    from party_sdk.tables.mapping import read_mapping

    if mapping_file is not None:
        how = replace(how, mapping=read_mapping(mapping_file))
    report, read = examine(file, how)
    if read is not None:
        of_ids = filter(None, (read.same_ids(), unnamed_warning(read.ids)))
        report = report.model_copy(update={"warnings": (*report.warnings, *of_ids)})
    show_report(report, as_json=as_json)
    unfit = read is not None and bool(read.unfit) and how.schema is None
    if report.problems or unfit:
        context.exit(INPUT_UNUSABLE)


def show_report(report: CheckReport, *, as_json: bool) -> None:
    """Print how a table is read, and what is wrong with it."""
    if as_json:
        # a program may log what it reads: values of cells are for people
        say(report.model_dump_json(exclude=CELLS))
    else:
        _print(report)


def _print(report: CheckReport) -> None:
    if report.columns:
        say(f"{report.file or 'table'}: {report.counted_rows}")
    if report.dialect:
        said = ", ".join(f"{name} {v}" for name, v in report.dialect_texts.items())
        say(f"written with {said}")
    width = max((len(column.name) for column in report.columns), default=0)
    for column in report.columns:
        gaps = f"{column.missing} missing" if column.missing else ""
        low, high = column.range
        extent = f"{low} to {high}" if low else ""
        say(f"  {column.name:{width}}  {column.type:8}  {extent:24}  {gaps}".rstrip())
    if report.match_keys:
        say("match keys, with their values of the first rows; nothing of it is sent")
    for each in report.match_keys:
        say(f"  {each.key}")
        say(f"    {each.sentence}")
        say(f"    {each.first_values}")
    for warning in report.warnings:
        say(f"warning: {warning}")
    for problem in report.sentences:
        say(f"problem: {problem}")


# Mappings


def _read_dictionary(how: How, terms: Path | None, slot: str | None) -> Schema:
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


def _propose_mapping(
    file: str,
    how: How,
    schema: Schema,
    out: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> Proposal:
    """Draft a mapping, write it where a file is named, and print how certain it is."""
    from party_sdk.tables.drafts import propose
    from party_sdk.tables.mapping import write_mapping

    if out is not None:
        try_outputs([out], Path(file), force=force)
        keep_others([out], None, force=force)
    found = propose(file, how, schema)
    if out is not None:
        write_whole(write_mapping(found.to_mapping()), out)
    if as_json:
        say(found.model_dump_json())
        return found
    for line in _proposal_lines(found):
        say(line)
    if out is None:
        say("")
        for line in write_mapping(found.to_mapping()).decode().splitlines():
            say(line)
    else:
        say(f"A draft in {out}: read it, complete it, then read the table with it.")
    return found


def _proposal_lines(found: Proposal) -> Iterator[str]:
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
    from party_sdk.tables.cells import describe_readings

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
        if column.minus and certainty == "guess":
            yield f"  {column.name}: other minus signs stand before negative numbers"
        if column.two_readings and certainty == "open":
            yield f"  {column.name}: {describe_readings(column.two_readings)}"
        if column.dates and certainty == "guess":
            yield f"  {column.name}: dates are {', '.join(column.dates)}"
        cells = [c for c in column.cells if not c.is_same]
        cells = [c for c in cells if c.certainty == certainty]
        for cell in cells[:_MOST_CELLS]:
            yield f"  {column.name}: {_describe(column, cell)}"
        if len(cells) > _MOST_CELLS:
            yield f"  {column.name}: {len(cells) - _MOST_CELLS} more"


def _describe(column: ColumnProposal, cell: LevelProposal) -> str:
    rows = "1 row" if cell.count == 1 else f"{cell.count} rows"
    if cell.is_limit:
        say_so = 'limits = "half", "value" or "missing"?'
        return f"{cell.text!r} ({rows}) is a limit: {say_so}"
    if cell.is_missing:
        return f"{cell.text!r} ({rows}) is no value"
    if cell.level is not None:
        return f"{cell.text!r} ({rows}) is {cell.level!r}"
    known = f" of {', '.join(map(repr, column.levels[:8]))}" if column.levels else ""
    what = "which level" if column.levels else "no number; which one, or none"
    near = f" Perhaps {' or '.join(map(repr, cell.perhaps))}." if cell.perhaps else ""
    return f"{cell.text!r} ({rows}): {what}{known}?{near}"


# Match keys


def _propose_match_keys(
    file: str, how: How, mapping_file: Path | None, *, as_json: bool
) -> None:
    """Print the proposed keys, and how the table's rows look by each of all."""
    from party_sdk.tables.linkage import propose_match_keys
    from party_sdk.tables.mapping import read_mapping

    if mapping_file is not None:
        how = replace(how, mapping=read_mapping(mapping_file))
    found = propose_match_keys(Path(file), how)
    if as_json:
        say(json.dumps([_figures(each) for each in found]))
        return
    for each in found:
        if each.serves:
            say(each.key)
        word = "" if each.serves else f"not proposed: {each.key}: "
        say(f"  {word}{each.sentence}", err=True)
        if each.serves:
            say(f"  first: {each.first_values}", err=True)
    if needs := describe_quota(sum(each.serves for each in found)):
        say(needs, err=True)


def _figures(each: KeyPreview) -> dict[str, object]:
    """Return what a program may log: no value of a cell."""
    shares = {"filled": each.completeness, "unique": each.uniqueness}
    return {"key": each.key, **shares, "serves": each.serves}
