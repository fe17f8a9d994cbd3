"""Options that say which files a command writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from party_sdk.cli.terminal.output import report_lines, say
from party_sdk.cli.terminal.run_table import table_lines
from party_sdk.results.output_files import write_whole

if TYPE_CHECKING:
    from coterie_pages.models import RunReport, SessionReport, TermsSheet

Command = Callable[..., Any]

force_option = click.option(
    "--force", is_flag=True, help="Overwrite the files that are written."
)


def label_lines(path: Path, n_rows: int) -> Iterator[str]:
    """Yield how many labels are in a file; say what a spreadsheet may do to their ids."""
    from party_sdk.results.label_files import formula_note

    yield f"{n_rows} labels in {path}"
    if note := formula_note(path):
        say(f"note: {note}", err=True)


def labels_option(command: Command) -> Command:
    """Add the options that say where labels go: ``labels``, and whether to ``force``."""
    return force_option(
        click.option(
            "--labels",
            type=click.Path(path_type=Path),
            default=Path("labels.csv"),
            show_default=True,
            help="Where to write the labels (CSV, Parquet or Excel, by its ending). Ids "
            "stay as they are, also where a spreadsheet takes one for a formula.",
        )(command)
    )


def picture_option(command: Command) -> Command:
    """Add the option that says where a picture goes; the command takes ``picture``."""
    return click.option(
        "--picture",
        type=click.Path(path_type=Path),
        help="Write a picture of your rows by cluster (SVG).",
    )(command)


def write_page(model: TermsSheet | RunReport | SessionReport, path: Path) -> None:
    """Write a page; the file is there as a whole or not at all."""
    from coterie_pages.pages import page

    write_whole(page(model).encode(), path)
    say(f"a page in {path}", err=True)


def write_assessment(sheet: TermsSheet, path: Path) -> None:
    """Write a data protection impact assessment of terms, to be filled in."""
    from coterie_pages.pages import assessment

    write_whole(assessment(sheet).encode(), path)
    say(f"an assessment to fill in, in {path}", err=True)


def report_summary(report: RunReport | SessionReport, state: str) -> Iterator[str]:
    """Yield in a few lines what a report holds."""
    yield f"{report.title}: {report.protocol}, {state}"
    if report.sheet is not None:
        yield f"terms {report.sheet.digest}"
    for seat in report.seats:
        name = "" if seat.who is None else seat.who.name or "gives no name"
        rows = "has not joined" if seat.n_rows is None else f"{seat.n_rows} rows"
        yield f"  {seat.slot}: {', '.join(filter(None, [name, rows]))}"
    if report.safety_number:
        yield f"safety number {report.safety_number}"
    if report.sizes:
        yield f"rows of all parties per cluster: {', '.join(map(str, report.sizes))}"
    yield from report_lines(report.told)
    chosen = next((n for n, run in enumerate(report.runs) if run.chosen), None)
    figures = [run.figures for run in report.runs]
    yield from table_lines([run.n_clusters for run in report.runs], figures, chosen)
    if report.measured:
        least, most = report.measured
        yield f"agreement with pooled clustering on public data: {least:.2f} to {most:.2f}"
