"""`coterie table`: how a file is read, and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from party_sdk.cli.options.tables import unmapped_reading_options
from party_sdk.cli.terminal.output import json_option, say
from party_sdk.cli.terminal.output_files import force_option

if TYPE_CHECKING:
    from party_sdk.tables import CheckReport, How
    from party_sdk.tables.mapping import Limit

INPUT_UNUSABLE = 5
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
@click.option(
    "--limits",
    type=click.Choice(["half", "value", "missing"]),
    help="With --propose: what limits of detection such as <0.1 become.",
)
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
    limits: Limit | None,
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
        from party_sdk.cli.match_key_proposal import show_match_keys

        show_match_keys(file, how, mapping_file, as_json=as_json)
        return
    if propose:
        from party_sdk.cli.table_proposal import propose_mapping, read_dictionary

        schema = read_dictionary(how, terms_file, slot)
        found = propose_mapping(
            file, how, schema, mapping_file, limits, force=force, as_json=as_json
        )
        context.exit(INPUT_UNUSABLE if found.n_open else 0)
    if terms_file is not None or slot is not None or limits is not None or force:
        raise click.UsageError(
            "--terms, --slot, --limits and --force go with --propose."
        )
    from party_sdk.tables import examine
    from party_sdk.tables.mapping import read_mapping

    if mapping_file is not None:
        how = replace(how, mapping=read_mapping(mapping_file))
    report, read = examine(file, how)
    if read is not None and (same := read.same_ids()):
        report = report.model_copy(update={"warnings": (*report.warnings, same)})
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
