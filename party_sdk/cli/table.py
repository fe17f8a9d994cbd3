"""`coterie table`: show how a file is read, and its problems."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from clustering_protocols.common.errors import InvalidParameters
from party_sdk.cli.options import OUT, Force, ReadingOptions, check_new_files
from party_sdk.cli.parameters import argument, command, option
from party_sdk.cli.terminal.output import Output, say
from party_sdk.home.policy import explain_quota
from party_sdk.results.output_files import write_atomically

if TYPE_CHECKING:
    from clustering_protocols.terms.schema import Schema
    from party_sdk.tables import CheckReport, ReadOptions
    from party_sdk.tables.drafts import ColumnProposal, LevelProposal, Proposal
    from party_sdk.tables.report import KeyPreview

INPUT_UNUSABLE = 5
_MAX_CELLS = 20
CELLS: Final[Any] = {
    "cells": True,
    "outliers": True,
    "columns": {"__all__": {"least", "largest"}},
    "match_keys": {"__all__": {"first"}},
}
"""The fields of a report that contain cells of the table."""


@command()
def table(
    file: Annotated[Path, argument()],
    *,
    reading: ReadingOptions,
    propose: Annotated[
        bool,
        option(
            "Draft a mapping against --schema or --terms: names, levels, units, codes."
        ),
    ] = False,
    link: Annotated[
        bool,
        option("Propose match keys, which link rows if there is no common id."),
    ] = False,
    terms: Annotated[
        Path | None,
        option(
            "With --propose: the terms of a session, whose dictionary is used.",
            type=OUT,
        ),
    ] = None,
    slot: Annotated[str | None, option("Your slot, if --terms has several.")] = None,
    id_patterns: Annotated[
        bool,
        option(
            "Draft patterns of the ids, for 'session create --id-pattern': 9 is a "
            "digit, A a letter. Anyone who reads the terms reads the pattern."
        ),
    ] = False,
    force: Force = False,
) -> Output:
    """Show how FILE is read, or its problems with their lines. Nothing is sent.

    With --schema, the file is checked against the dictionary. The exit code is 5 if
    there are problems. Without --schema, missing values and text also count as
    problems, because 'run' refuses them unless the terms describe them.

    With --propose, a mapping is drafted, and each part of it is marked as certain, a
    guess or open. The exit code is 5 if something is open.

    With --link, match keys for 'session create' are proposed, from the columns that
    identify people. For each key, the output says how many rows have a value, and how
    many of these values are unique.
    """
    options = reading.read_options(is_mapped=not propose)
    if propose:
        schema = _read_dictionary(options, terms, slot)
        return _propose_mapping(file, options, schema, reading.mapping, force=force)
    if terms is not None or slot is not None or force:
        raise click.UsageError("--terms, --slot and --force need --propose.")
    from clustering_protocols.shared_stages.alignment.cell_values import (
        missing_ids_note,
    )
    from party_sdk.tables import examine_table

    if link:
        from party_sdk.tables.linkage import propose_match_keys

        keys = propose_match_keys(file, options)
        return Output([_match_key_figures(key) for key in keys], _match_key_lines(keys))
    if id_patterns and not options.id_column:
        raise click.UsageError("Name the id column: --id-column.")
    report, data = examine_table(str(file), options)
    if id_patterns and data is not None and data.ids:
        return _draft_patterns(data.ids)
    if data is not None:
        of_ids = filter(None, (data.describe_same_ids(), missing_ids_note(data.ids)))
        report = report.model_copy(update={"warnings": (*report.warnings, *of_ids)})
    is_unfit = bool(report.obstacles) and options.schema is None
    return report_output(report, fails=bool(report.problems) or is_unfit or id_patterns)


def _draft_patterns(ids: Sequence[str]) -> Output:
    """Draft patterns that match the ids, and keep letters that nearly all ids share."""
    from clustering_protocols.shared_stages.alignment.id_patterns import (
        draft_patterns,
        fit_patterns,
    )
    from clustering_protocols.shared_stages.alignment.params import Alignment

    patterns = draft_patterns(ids)
    fitting = fit_patterns(patterns, ids, Alignment().normalisation)
    say(f"{fitting.n_fitting} of {fitting.n_ids} ids look like this.", err=True)
    counts = {"n_ids": fitting.n_ids, "n_fitting": fitting.n_fitting}
    lines = (f"--id-pattern {shlex.quote(pattern)}" for pattern in patterns)
    return Output({"patterns": patterns, **counts}, lines)


def report_output(report: "CheckReport", *, fails: bool) -> Output:
    """Return the output of a check: how a table is read, and its problems.

    The JSON document contains no cells, and thus no ranges or outliers, because a
    program may log it. The exit code is 5 if ``fails``.
    """
    return Output(
        lambda: report.model_dump_json(exclude=CELLS),
        _report_lines(report),
        INPUT_UNUSABLE if fails else 0,
    )


def _report_lines(report: "CheckReport") -> Iterator[str]:
    if report.columns:
        yield f"{report.file or 'table'}: {report.row_count_text}"
    if report.dialect:
        dialect = ", ".join(f"{name} {v}" for name, v in report.dialect_texts.items())
        yield f"written with {dialect}"
    width = max((len(column.name) for column in report.columns), default=0)
    for column in report.columns:
        counts = {"missing": column.missing, "not readable": column.unreadable}
        gaps = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
        low, high = column.range_texts
        extent = f"{low} to {high}" if low else ""
        yield f"  {column.name:{width}}  {column.type:8}  {extent:24}  {gaps}".rstrip()
    if report.match_keys:
        yield "match keys, with the values of the first rows; none of this is sent"
    for key in report.match_keys:
        yield f"  {key.key}"
        yield f"    {key.sentence}"
        yield f"    {key.first_values}"
    for warning in report.warning_sentences + report.obstacle_sentences:
        yield f"warning: {warning}"
    for problem in report.problem_sentences:
        yield f"problem: {problem}"


# Mappings


def _read_dictionary(
    options: "ReadOptions", terms: Path | None, slot: str | None
) -> "Schema":
    if terms is None and options.schema is not None:
        return options.schema
    if terms is None or options.schema is not None:
        raise click.UsageError("Give --schema FILE, or --terms FILE.")
    from clustering_protocols.terms.terms import read_terms

    try:
        session_terms = read_terms(terms.read_bytes())
    except OSError:
        raise InvalidParameters(f"{terms.name!r} cannot be read.") from None
    names = session_terms.layout.names
    if slot is None and len(names) == 1:
        slot = names[0]
    if slot not in names:
        raise InvalidParameters(f"Name your slot (--slot): {', '.join(names)}.")
    dictionary = session_terms.dictionary_of(slot)
    if dictionary is None:
        raise click.UsageError("These terms have no dictionary: give --schema FILE.")
    return dictionary


def _propose_mapping(
    file: Path,
    options: "ReadOptions",
    schema: "Schema",
    out: Path | None,
    *,
    force: bool,
) -> Output:
    from party_sdk.tables.drafts import draft_mapping
    from party_sdk.tables.mapping import dump_mapping

    check_new_files([out], file, force=force)
    proposal = draft_mapping(str(file), options, schema)
    draft, lines = dump_mapping(proposal.to_mapping()), list(_proposal_lines(proposal))
    if out is None:
        lines += ["", *draft.decode().splitlines()]
    else:
        write_atomically(draft, out)
        lines.append(
            f"A draft in {out}: read it, complete it, then read the table with it."
        )
    return Output(proposal, lines, INPUT_UNUSABLE if proposal.n_open else 0)


def _proposal_lines(proposal: "Proposal") -> Iterator[str]:
    """Yield a proposal, including cells, for the operator's own screen."""
    yield f"{proposal.file or 'table'}: {proposal.rows} rows"
    for certainty in ("certain", "guess", "open"):
        lines = list(_certainty_lines(proposal, certainty))
        if lines:
            yield f"{certainty}:"
            yield from lines
    for name, cells in proposal.totals.items():
        yield f"left out as totals: {', '.join(map(repr, cells))} in {name!r}"
    if proposal.copies:
        copies = ", ".join(map(str, proposal.copies[:20]))
        more = f" and {len(proposal.copies) - 20} more" * (len(proposal.copies) > 20)
        yield f"left out as copies of earlier rows: {copies}{more}"
    if proposal.unused:
        more = f" and {len(proposal.unused) - 20} more" * (len(proposal.unused) > 20)
        yield f"not used: {', '.join(map(repr, proposal.unused[:20]))}{more}"


def _certainty_lines(proposal: "Proposal", certainty: Any) -> Iterator[str]:
    from party_sdk.tables.cells import describe_readings

    for column in proposal.columns:
        if column.source is None:
            if certainty == "open":
                candidates = ", ".join(map(repr, column.candidates[:3]))
                yield f"  {column.name}: no column is similar (perhaps {candidates})"
            continue
        if column.certainty == certainty:
            yield f"  {column.name} from {column.source!r}: {column.why}"
        if column.convert and certainty == "guess":
            yield f"  {column.name}: unit guessed from its name, {column.convert}"
        if column.thousands and certainty == "guess":
            yield f"  {column.name}: {column.thousands!r} separates thousands"
        if column.minus and certainty == "guess":
            yield f"  {column.name}: negative numbers have unusual minus signs"
        if column.two_readings and certainty == "open":
            yield f"  {column.name}: {describe_readings(column.two_readings)}"
        if column.dates and certainty == "guess":
            yield f"  {column.name}: dates are {', '.join(column.dates)}"
        cells = [c for c in column.cells if not c.is_same]
        cells = [c for c in cells if c.certainty == certainty]
        for cell in cells[:_MAX_CELLS]:
            yield f"  {column.name}: {_describe_cell(column, cell)}"
        if len(cells) > _MAX_CELLS:
            yield f"  {column.name}: {len(cells) - _MAX_CELLS} more"


def _describe_cell(column: "ColumnProposal", cell: "LevelProposal") -> str:
    rows = "1 row" if cell.count == 1 else f"{cell.count} rows"
    if cell.is_limit:
        choices = 'limits = "half", "value" or "missing"?'
        return f"{cell.text!r} ({rows}) is a limit: {choices}"
    if cell.is_missing:
        return f"{cell.text!r} ({rows}) means a missing value"
    if cell.level is not None:
        return f"{cell.text!r} ({rows}) is {cell.level!r}"
    levels = f" of {', '.join(map(repr, column.levels[:8]))}" if column.levels else ""
    question = "which level" if column.levels else "not a number; which one, or none"
    suggestion = (
        f" Perhaps {' or '.join(map(repr, cell.perhaps))}." if cell.perhaps else ""
    )
    return f"{cell.text!r} ({rows}): {question}{levels}?{suggestion}"


# Match keys


def _match_key_figures(key: "KeyPreview") -> dict[str, object]:
    """Return how complete and unique a match key is, without cells, for JSON output."""
    shares = {"filled": key.completeness, "unique": key.uniqueness}
    return {"key": key.key, **shares, "serves": key.is_usable}


def _match_key_lines(keys: Sequence["KeyPreview"]) -> Iterator[str]:
    for key in keys:
        if key.is_usable:
            yield key.key
        prefix = "" if key.is_usable else f"not proposed: {key.key}: "
        say(f"  {prefix}{key.sentence}", err=True)
        if key.is_usable:
            say(f"  first: {key.first_values}", err=True)
    if needs := explain_quota(sum(key.is_usable for key in keys)):
        say(needs, err=True)
