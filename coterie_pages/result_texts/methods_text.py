"""A methods section and citations of a result, ready to paste."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coterie_pages.formatting import figure, number, shown_figures
from coterie_pages.models import RunReport, SessionReport

SOFTWARE: Final = (
    "The Coterie developers. Coterie: collaborative clustering over data that "
    "institutions may not pool. Version {version}. Software."
)
_QUALITY: Final = (
    "simplified_silhouette",
    "silhouette",
    "calinski_harabasz",
    "davies_bouldin",
    "stability",
)


def methods_of(report: RunReport | SessionReport) -> str:
    """Return what was done, as a paper says it."""
    return " ".join(_sentences(report))


def citations_of(report: RunReport | SessionReport) -> list[str]:
    """Return what to cite: the software, and the paper of the method."""
    software = SOFTWARE.format(version=report.versions.coterie)
    paper = "" if report.sheet is None else report.sheet.paper
    return [software, *([paper] if paper else [])]


def _sentences(report: RunReport | SessionReport) -> Iterator[str]:
    title = report.protocol if report.sheet is None else report.sheet.protocol_title
    n_parties = len(report.seats)
    yield (
        f"Data of {n_parties} institutions were clustered without pooling them: "
        f"{title} (protocol {report.protocol}, version {report.versions.protocol}; "
        f"Coterie {report.versions.coterie})."
    )
    if n_parties:
        yield _split(report)
    if report.sizes:
        yield f"{sum(report.sizes):,} rows were clustered."
    yield from _variables(report)
    yield from _number_of_clusters(report)
    yield from _parameters(report)
    yield from _statistics(report)
    agreed = f", digest of the agreement {report.agreement[:16]}" * bool(
        report.agreement
    )
    yield f"Session {report.session}{agreed}."


def _split(report: RunReport | SessionReport) -> str:
    n_rows = len({seat.row for seat in report.seats})
    n_columns = len({seat.column for seat in report.seats})
    if n_columns == 1:
        return "The institutions hold the same variables of different people."
    if n_rows == 1:
        return "The institutions hold different variables of the same people."
    return (
        f"The institutions form {n_rows} groups of different people and {n_columns} "
        "groups of different variables."
    )


def _variables(report: RunReport | SessionReport) -> Iterator[str]:
    described = {field.name for table in report.outcomes for field in table.fields}
    groups = () if report.sheet is None else report.sheet.dictionary
    names = [
        field.title or field.name
        for group in groups
        for field in group.fields
        if field.name not in described
    ]
    if names:
        yield f"The clustered variables were {_join(names)}."
    told = {
        field.title or field.name for table in report.outcomes for field in table.fields
    }
    if told:
        yield f"Variables that were described alone: {', '.join(sorted(told))}."


def _number_of_clusters(report: RunReport | SessionReport) -> Iterator[str]:
    chosen = next((run for run in report.runs if run.chosen), None)
    if len(report.runs) > 1 and chosen is not None:
        tried = ", ".join(str(run.n_clusters) for run in report.runs)
        yield (
            f"Of the numbers of clusters {tried}, {chosen.n_clusters} was taken"
            f"{_rule(report)}."
        )
    elif report.sizes:
        yield f"The number of clusters was {len(report.sizes)}."
    line = chosen or (report.runs[0] if len(report.runs) == 1 else None)
    if line is not None:
        known = [name for name in shown_figures([line]) if name in _QUALITY]
        said = [f"{figure(name)} {number(line.figures[name])}" for name in known]
        if said:
            yield f"Its quality measures: {', '.join(said)}."
    given = () if report.sheet is None else report.sheet.parameters
    if not any((each.name, each.value) == ("init", "given") for each in given):
        yield "Clusters are numbered from 0 by size."


def _rule(report: RunReport | SessionReport) -> str:
    """Return how the number was chosen, in the words of the terms."""
    if report.sheet is None or not report.sheet.runs:
        return ""
    return f" ({report.sheet.runs})"


def _parameters(report: RunReport | SessionReport) -> Iterator[str]:
    given = () if report.sheet is None else report.sheet.parameters
    said = [
        f"{each.name} = {each.value}"
        for each in given
        if not each.usual and each.name != "n_clusters"
    ]
    if said:
        yield f"Parameters other than the defaults: {'; '.join(said)}."


def _statistics(report: RunReport | SessionReport) -> Iterator[str]:
    if report.profiles:
        yield "Profiles give means ± standard deviations with quartiles, or shares."
    if report.outcomes:
        yield (
            "Described variables have intervals of 95 % (Student's t, Wilson), and tests "
            "by one-way analysis of variance or Pearson's chi-squared, without correction "
            "for their number."
        )


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
