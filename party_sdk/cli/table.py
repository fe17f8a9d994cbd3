"""`coterie table` and `coterie schema`: how a file is read, and what its columns mean."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.output import json_option, say
from party_sdk.cli.outputs import force_option
from party_sdk.cli.table_options import reading_options
from party_sdk.outputs import keep_others, try_outputs

if TYPE_CHECKING:
    from party_sdk.tables import CheckReport, How

INPUT_UNUSABLE = 5


@click.command()
@click.argument("file")
@reading_options
@json_option
@click.pass_context
def table(context: click.Context, file: str, how: How, *, as_json: bool) -> None:
    """Say how FILE is read, or what is wrong with it and where. Nothing is sent.

    With --schema: whether it is what the dictionary describes. FILE may be
    postgresql://… with --query. Ends with 5 if there are problems, and without --schema
    if there are gaps or words: 'run' refuses them unless the terms describe them.
    """
    from party_sdk.tables import examine

    report, read = examine(file, how)
    if read is not None and (same := read.same_ids()):
        report = report.model_copy(update={"warnings": (*report.warnings, same)})
    show_report(report, as_json=as_json)
    unfit = read is not None and bool(read.unfit) and how.schema is None
    if report.problems or unfit:
        context.exit(INPUT_UNUSABLE)


@click.group()
def schema() -> None:
    """Describe the columns of a table in a data dictionary."""


@schema.command()
@click.argument("file")
@reading_options
@click.option(
    "--levels", is_flag=True, help="Write the levels of columns of words, unasked."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where to write the dictionary; standard output by default.",
)
@force_option
def infer(file: str, how: How, out: Path | None, *, levels: bool, force: bool) -> None:
    """Draft a dictionary of FILE: names and types, for you to complete.

    The words of a column are written as its levels if you say so, or with --levels: they
    come from your rows, and whoever reads the dictionary reads them.
    """
    from party_sdk.tables.dictionaries import infer as drafted

    try_outputs([out], Path(file), force=force)
    keep_others([out], None, force=force)
    found, left = drafted(file, how, (lambda *_: True) if levels else _ask)
    for name in left:
        say(
            f"{name!r} is left out: words without levels. --levels writes them, or you do.",
            err=True,
        )
    text = found.model_dump_json(indent=2)
    if out is None:
        click.echo(text)
    else:
        out.write_text(f"{text}\n", encoding="utf-8")
        say(f"{len(found.fields)} fields in {out}", err=True)


@schema.command()
@click.argument("file")
@reading_options
@json_option
@click.pass_context
def ids(context: click.Context, file: str, how: How, *, as_json: bool) -> None:
    """Draft what the ids of FILE look like, for 'session create --id-pattern'.

    In a pattern 9 is a digit and A a letter; letters that nearly all ids share stand for
    themselves. Whoever reads the terms reads the pattern.
    """
    from clustering_protocols.preparation.alignment.params import Alignment
    from clustering_protocols.preparation.alignment.patterns import drafted, fit
    from party_sdk.tables import examine

    if not how.id_column:
        raise click.UsageError("Name the id column: --id-column.")
    report, read = examine(file, how)
    if read is None or not read.ids:
        show_report(report, as_json=as_json)
        context.exit(INPUT_UNUSABLE)
    patterns = drafted(read.ids)
    found = fit(patterns, read.ids, Alignment().normalisation)
    if as_json:
        told = {
            "patterns": patterns,
            "n_ids": found.n_ids,
            "n_fitting": found.n_fitting,
        }
        say(json.dumps(told))
        return
    for pattern in patterns:
        say(f"--id-pattern {shlex.quote(pattern)}")
    say(f"{found.n_fitting} of {found.n_ids} ids look like this.", err=True)


def _ask(name: str, levels: Sequence[str]) -> bool:
    if not sys.stdin.isatty():
        return False
    shown = ", ".join(map(repr, levels))
    say(f"{name!r} holds {len(levels)} different words: {shown}", err=True)
    return click.confirm("Write them as its levels?", err=True)


def show_report(report: CheckReport, *, as_json: bool) -> None:
    """Print how a table is read, and what is wrong with it."""
    if as_json:
        say(report.model_dump_json())
    else:
        _print(report)


def _print(report: CheckReport) -> None:
    if report.columns:
        say(f"{report.file or 'table'}: {report.rows} rows")
    if report.dialect:
        said = ", ".join(f"{name} {_shown(v)}" for name, v in report.dialect.items())
        say(f"written with {said}")
    width = max((len(column.name) for column in report.columns), default=0)
    for column in report.columns:
        gaps = f"{column.missing} missing" if column.missing else ""
        low, high = column.range
        extent = f"{low} to {high}" if low else ""
        say(f"  {column.name:{width}}  {column.type:8}  {extent:24}  {gaps}".rstrip())
    for warning in report.warnings:
        say(f"warning: {warning}")
    for problem in report.problems:
        say(f"problem: {problem.sentence(report.counts)}")
    if report.more_problems:
        say(f"problem: {report.more_problems} more")


def _shown(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(repr, value))
    return repr(value) if isinstance(value, str) and len(value) < 3 else str(value)
