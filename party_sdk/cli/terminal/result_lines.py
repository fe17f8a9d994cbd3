"""What a result is like, as lines of a terminal: runs, profiles, described variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from party_sdk.cli.terminal.output import align_columns, report_lines, say
from party_sdk.results.output_files import write_whole

if TYPE_CHECKING:
    from clustering_protocols.numerics.outcomes import OutcomeTable
    from clustering_protocols.numerics.profiles import Profile
    from coterie_pages.models import RunReport, SessionReport, TermsSheet

_MOST_FIELDS: Final = 12
_BESIDE: Final = frozenset(
    {"n_clusters", "clusters_with_rows", "gap_error", "gap_of_one"}
)
_HOW: Final = frozenset({"n_iter", "converged"})


# Runs


def known_figures(
    runs: Sequence[Mapping[str, Any]], *, qualities: bool = False
) -> list[str]:
    """Return the names of the figures that some run has and that stand for themselves.

    qualities: leave out those that say how a partition was found, not how good it is.
    """
    hidden = _BESIDE | _HOW if qualities else _BESIDE
    names = dict.fromkeys(name for run in runs for name in run)
    return [
        name
        for name in names
        if name not in hidden and any(run.get(name) is not None for run in runs)
    ]


def no_clusters(where: str = "") -> str:
    """Return what is said where the gap statistic says one cluster."""
    return (
        f"no clusters: {where}the gap statistic says that all rows are one cluster; what "
        "was found are parts of it"
    )


def table_lines(
    n_clusters: Sequence[int],
    figures: Sequence[Mapping[str, Any]],
    chosen: int | None,
    sizes: Sequence[Sequence[int]] = (),
) -> Iterator[str]:
    """Yield a header and a line for each run, the chosen one with a mark.

    sizes: of the clusters of each run, in fives, where they are told.

    Figures that no run has are left out; without any there are no lines.
    """
    if not figures:
        return
    names = known_figures(figures)
    sized = any(sizes)
    rows = [["clusters", *names, *["sizes"] * sized]]
    for number, (k, run) in enumerate(zip(n_clusters, figures, strict=True)):
        mark = " *" if number == chosen else ""
        told = [", ".join(map(str, sizes[number])) or "-"] if sized else []
        rows.append(
            [f"{k}{mark}", *(_format_value(run[name]) for name in names), *told]
        )
    yield from align_columns(rows)
    if figures[0].get("gap") is not None and _says_one(figures):
        yield no_clusters()


def _says_one(figures: Sequence[Mapping[str, Any]]) -> bool:
    from clustering_protocols.numerics.metrics import Figures
    from clustering_protocols.quality.gap import says_one

    return bool(says_one([Figures(**run) for run in figures]))


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value or "-")


# Profiles


def profile_lines(profiles: Sequence[Profile]) -> Iterator[str]:
    """Yield a table for each column group: fields by how far they set clusters apart."""
    # not above: it takes arrays
    from coterie_pages.result_texts import PairedProfile

    for profile in profiles:
        whose = "of own rows" if profile.own else "over all parties"
        told = ", rounded" if profile.rounded else ""
        yield f"columns {profile.column + 1}, {whose}{told}:"
        if not profile.n_rows:
            yield "  too few rows for a profile"
            continue
        yield from _survival_lines(profile)
        described = [list(row) for row in PairedProfile(profile, None).rows()]
        if profile.is_description:
            yield f"  {profile.n_rows[0]} rows"
            yield from (f"  {line}" for line in align_columns(described))
            continue
        shown = list(zip(described, profile.fields, strict=True))[:_MOST_FIELDS]
        rows = [
            ["", *profile.line_names, "apart"],
            ["rows", *map(str, profile.n_rows), ""],
            *([*row, f"{field.difference:.2f}"] for row, field in shown),
        ]
        yield from (f"  {line}" for line in align_columns(rows))
        if left := len(described) - len(shown):
            yield f"  and {left} more fields that set clusters less apart"


def _survival_lines(profile: Profile) -> Iterator[str]:
    """Yield of each time to an event its log-rank test, and the means of all lines."""
    if not profile.survival:
        return
    from coterie_pages.formatting import log_rank_text, survival_rows

    for time in profile.survival:
        unit = f" {time.unit}" if time.unit else ""
        yield f"  {time.title or time.name} until {time.event}, log-rank {log_rank_text(time)}:"
        heads = ("", "rows", "events", f"mean up to {time.most:g}{unit}")
        table = [list(heads), *map(list, survival_rows(time, profile.line_names))]
        yield from (f"    {line}" for line in align_columns(table))


def outcome_lines(tables: Sequence[OutcomeTable]) -> Iterator[str]:
    """Yield intervals and tests of described variables, a table for each profile."""
    # not above: most sessions describe nothing
    from coterie_pages.formatting import format_test, outcome_cell

    for table in tables:
        whose = "of own rows" if table.own else "over all parties"
        yield f"described variables of columns {table.column + 1}, {whose}:"
        heads = [f"cluster {label}" for label in table.clusters]
        heads += ["others"] * bool(table.others)
        rows = [["", *heads, "test"]]
        for field in table.fields:
            unit = f" ({field.unit})" if field.unit else ""
            cells = [outcome_cell(field, place) for place in range(len(heads))]
            name = f"{field.title or field.name}{unit}"
            rows.append([name, *cells, format_test(field)])
        yield from (f"  {line}" for line in align_columns(rows))
        yield from (f"  {note}" for note in table.notes)


def documents(
    profiles: Sequence[Profile], tables: Sequence[OutcomeTable]
) -> dict[str, Any]:
    """Return profiles, and the tables of described variables, as JSON values."""
    return {
        "profiles": [profile.model_dump(mode="json") for profile in profiles],
        "outcomes": [table.model_dump(mode="json") for table in tables],
    }


# Reports and files


def label_lines(path: Path, n_rows: int) -> Iterator[str]:
    """Yield how many labels are in a file; say what a spreadsheet may do to their ids."""
    from party_sdk.results.label_files import formula_note

    yield f"{n_rows} labels in {path}"
    if note := formula_note(path):
        say(f"note: {note}", err=True)


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
