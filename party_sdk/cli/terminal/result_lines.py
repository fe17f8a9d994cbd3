"""Format a result as lines of a terminal: runs, profiles and described variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from party_sdk.cli.terminal.output import align_columns, report_lines, say
from party_sdk.results.output_files import write_atomically

if TYPE_CHECKING:
    from clustering_protocols.numerics.outcomes import OutcomeTable
    from clustering_protocols.numerics.profiles import Profile
    from clustering_protocols.wire.answers import RunLine
    from coterie_pages.models import RunReport, SessionReport, TermsSheet

_MAX_FIELDS: Final = 12


# Runs


def one_cluster_warning(where: str = "") -> str:
    """Return a warning that the gap statistic favours a single cluster."""
    return (
        f"no clusters: {where}the gap statistic says that all rows are one cluster; the "
        "clusters found are parts of it"
    )


def run_table_lines(runs: Sequence[RunLine]) -> Iterator[str]:
    """Yield a header and a line for each run; the selected run is marked.

    Quality figures that no run has are omitted.
    """
    # Imported here, because it needs arrays.
    from clustering_protocols.numerics.metrics import Figures
    from clustering_protocols.quality.runs import favours_one_cluster
    from coterie_pages.formatting import figures_with_values, format_number

    if not runs:
        return
    names = figures_with_values(runs)
    has_sizes = any(run.sizes for run in runs)
    rows = [["clusters", *names, *["sizes"] * has_sizes]]
    for run in runs:
        sizes = [", ".join(map(str, run.sizes)) or "–"] if has_sizes else []
        k = f"{run.n_clusters}{' *' * run.chosen}"
        rows.append([k, *(format_number(run.figures[name]) for name in names), *sizes])
    yield from align_columns(rows)
    if "gap" in names and favours_one_cluster(
        [Figures.model_validate(run.figures) for run in runs]
    ):
        yield one_cluster_warning()


# Profiles


def profile_lines(profiles: Sequence[Profile]) -> Iterator[str]:
    """Yield a table for each profile; the fields that differ most come first."""
    if not profiles:
        return
    # Imported here, because it needs arrays and pictures.
    from coterie_pages.result_texts import PairedProfile

    for profile in profiles:
        scope = "of own rows" if profile.own else "over all parties"
        rounding = ", rounded" if profile.rounded else ""
        yield f"columns {profile.column + 1}, {scope}{rounding}:"
        if not profile.n_rows:
            yield "  too few rows for a profile"
            continue
        yield from _survival_lines(profile)
        described_rows = [list(row) for row in PairedProfile(profile, None).rows()]
        if profile.is_description:
            yield f"  {profile.n_rows[0]} rows"
            yield from (f"  {line}" for line in align_columns(described_rows))
            continue
        pairs = list(zip(described_rows, profile.fields, strict=True))[:_MAX_FIELDS]
        rows = [
            ["", *profile.line_names, "apart"],
            ["rows", *map(str, profile.n_rows), ""],
            *([*row, f"{field.difference:.2f}"] for row, field in pairs),
        ]
        yield from (f"  {line}" for line in align_columns(rows))
        if n_left := len(described_rows) - len(pairs):
            yield f"  and {n_left} more fields that differ less between clusters"


def _survival_lines(profile: Profile) -> Iterator[str]:
    if not profile.survival:
        return
    from coterie_pages.formatting import format_log_rank, survival_rows

    for time in profile.survival:
        unit = f" {time.unit}" if time.unit else ""
        yield f"  {time.title or time.name} until {time.event}, log-rank {format_log_rank(time)}:"
        heads = ("", "rows", "events", f"mean up to {time.most:g}{unit}")
        table = [list(heads), *map(list, survival_rows(time, profile.line_names))]
        yield from (f"    {line}" for line in align_columns(table))


def outcome_lines(tables: Sequence[OutcomeTable]) -> Iterator[str]:
    """Yield the intervals and tests of described variables, in one table per profile."""
    # Imported here, because most sessions describe nothing.
    from coterie_pages.formatting import outcome_rows

    for table in tables:
        scope = "of own rows" if table.own else "over all parties"
        yield f"described variables of columns {table.column + 1}, {scope}:"
        heads = [f"cluster {label}" for label in table.clusters]
        heads += ["others"] * bool(table.others)
        rows = [("", "test", *heads), *outcome_rows(table, heads)]
        yield from (f"  {line}" for line in align_columns(rows))
        yield from (f"  {note}" for note in table.notes)


def profiles_as_json(
    profiles: Sequence[Profile], tables: Sequence[OutcomeTable]
) -> dict[str, Any]:
    """Return profiles and the tables of described variables as JSON values."""
    return {
        "profiles": [profile.model_dump(mode="json") for profile in profiles],
        "outcomes": [table.model_dump(mode="json") for table in tables],
    }


# Reports and files


def label_lines(path: Path, n_rows: int) -> Iterator[str]:
    """Yield the number of labels; print a note if a spreadsheet could alter the ids."""
    from party_sdk.results.label_files import formula_advice

    yield f"{n_rows} labels in {path}"
    if note := formula_advice(path):
        say(f"note: {note}", err=True)


def write_page(model: TermsSheet | RunReport | SessionReport, path: Path) -> None:
    """Write a sheet or a report as a self-contained HTML page."""
    from coterie_pages.pages import render_html

    write_atomically(render_html(model).encode(), path)
    say(f"a page in {path}", err=True)


def write_assessment(sheet: TermsSheet, path: Path) -> None:
    """Write a draft of the data protection impact assessment of terms."""
    from coterie_pages.pages import render_assessment

    write_atomically(render_assessment(sheet).encode(), path)
    say(f"an assessment to fill in, in {path}", err=True)


def report_summary_lines(
    report: RunReport | SessionReport, state: str
) -> Iterator[str]:
    """Yield a short summary of a report: terms, members, sizes, values and runs."""
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
    yield from run_table_lines(report.runs)
    if report.measured:
        worst, best = report.measured
        yield f"agreement with pooled clustering on public data: {worst:.2f} to {best:.2f}"
