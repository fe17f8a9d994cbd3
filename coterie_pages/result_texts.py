"""Sentences about a result: methods, cluster traits, caveats, and the run to select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from clustering_protocols.numerics.profiles import (
    NO_YES,
    FieldProfile,
    Profile,
    format_date,
)
from clustering_protocols.terms.sections import LEAST_IS_BEST
from clustering_protocols.wire.answers import RunLine
from coterie_pages.formatting import (
    figures_with_values,
    format_number,
    format_percent_of,
    name_figure,
    profile_cell,
)
from coterie_pages.models import RunReport, SessionReport
from coterie_pages.svg import Deviations, deviations

SOFTWARE: Final = (
    "The Coterie developers. Coterie: collaborative clustering over data that "
    "institutions may not pool. Version {version}. Software."
)
_MEASURES: Final = (
    "simplified_silhouette",
    "silhouette",
    "calinski_harabasz",
    "davies_bouldin",
)
_LEAST_DEVIATION: Final = 0.5
"""The minimum distance of a trait from the overall mean, in standard deviations."""
_MAX_TRAITS: Final = 3
_LEAST_SILHOUETTE: Final = 0.25
"""A smaller silhouette indicates no substantial structure (Kaufman and Rousseeuw 1990)."""
_LEAST_STABILITY: Final = 0.75
"""Below this stability, a different sample of rows would give different clusters."""
_LOSSLESS: Final = 0.99
_SMALL_CLUSTER: Final = 10


def citations_of(report: RunReport | SessionReport) -> list[str]:
    """Return the references to cite: the software and the publication of the method."""
    software = SOFTWARE.format(version=report.versions.coterie)
    paper = "" if report.sheet is None else report.sheet.paper
    return [software, *([paper] if paper else [])]


def methods_of(report: RunReport | SessionReport) -> Iterator[str]:
    """Yield the sentences for the methods section of a paper."""
    sheet, seats = report.sheet, report.seats
    title = report.protocol if sheet is None else sheet.protocol_title
    yield (
        f"Data of {len(seats)} institutions were clustered without pooling them: "
        f"{title} (protocol {report.protocol}, version {report.versions.protocol}; "
        f"Coterie {report.versions.coterie})."
    )
    n_rows, n_columns = len({s.row for s in seats}), len({s.column for s in seats})
    if n_columns == 1:
        yield "The institutions hold the same variables of different people."
    elif n_rows == 1:
        yield "The institutions hold different variables of the same people."
    elif seats:
        yield (
            f"The institutions form {n_rows} groups of different people and {n_columns} "
            "groups of different variables."
        )
    if report.sizes:
        yield f"{sum(report.sizes):,} rows were clustered."
    outcomes = [field for table in report.outcomes for field in table.fields]
    described = {field.name for field in outcomes}
    clustered = [
        field.title or field.name
        for group in (() if sheet is None else sheet.dictionary)
        for field in group.fields
        if field.name not in described
    ]
    if clustered:
        yield f"The clustered variables were {_join_names(clustered)}."
    if outcomes:
        titles = sorted({field.title or field.name for field in outcomes})
        yield f"Variables that were only described: {', '.join(titles)}."
    yield from _describe_number_of_clusters(report)
    changed = [
        f"{parameter.name} = {parameter.value}"
        for parameter in (() if sheet is None else sheet.parameters)
        if not parameter.usual and parameter.name != "n_clusters"
    ]
    if changed:
        yield f"Parameters other than the defaults: {'; '.join(changed)}."
    if report.profiles:
        yield "Profiles give means ± standard deviations with quartiles, or proportions."
    if report.outcomes:
        yield (
            "Described variables have 95 % confidence intervals (Student's t, Wilson), and "
            "tests by one-way analysis of variance or Pearson's chi-squared, not corrected "
            "for multiple testing."
        )
    digest = f", digest of the agreement {report.agreement[:16]}"
    yield f"Session {report.session}{digest * bool(report.agreement)}."


def _describe_number_of_clusters(report: RunReport | SessionReport) -> Iterator[str]:
    sheet, runs = report.sheet, report.runs
    selected = next((run for run in runs if run.chosen), None)
    if len(runs) > 1 and selected is not None:
        numbers = ", ".join(str(run.n_clusters) for run in runs)
        rule = f" ({sheet.runs})" if sheet is not None and sheet.runs else ""
        yield (
            f"Runs with {numbers} clusters were made, of which the one with "
            f"{selected.n_clusters} was selected{rule}."
        )
    elif report.sizes:
        yield f"The number of clusters was {len(report.sizes)}."
    run = selected or (runs[0] if len(runs) == 1 else None)
    if run is not None:
        measures = [
            f"{name_figure(name)} {format_number(run.figures[name])}"
            for name in figures_with_values([run])
            if name in {*_MEASURES, "stability"}
        ]
        if measures:
            yield f"Its quality measures: {', '.join(measures)}."
    parameters = () if sheet is None else sheet.parameters
    if not any((p.name, p.value) == ("init", "given") for p in parameters):
        yield "Clusters are numbered from 0 by size."


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def describe_clusters(profiles: Sequence[Profile]) -> Mapping[int, str]:
    """Describe each cluster by the variables that differ most from the overall mean.

    Uses the profiles of all parties or, without any, those of the party's own rows.
    """
    pooled_profiles = [profile for profile in profiles if not profile.own] or list(
        profiles
    )
    traits: dict[int, list[str]] = {}
    for profile in pooled_profiles:
        for line, cluster in enumerate(profile.clusters):
            traits.setdefault(cluster, []).extend(_describe_traits(profile, line))
    return {
        cluster: "; ".join(texts[:_MAX_TRAITS])
        or "near the overall mean in every variable"
        for cluster, texts in traits.items()
    }


def _describe_traits(profile: Profile, line: int) -> Iterator[str]:
    rows = [
        (deviation, row)
        for row in deviations(profile)
        if (deviation := row.values[line]) is not None
        # skip the proportion of no, which that of yes implies
        and not (row.field.levels == NO_YES and row.level == 0)
    ]
    rows.sort(key=lambda pair: -abs(pair[0]))
    names: set[str] = set()  # mention each variable only once
    for deviation, row in rows:
        if abs(deviation) < _LEAST_DEVIATION or len(names) == _MAX_TRAITS:
            return
        if row.field.name not in names:
            names.add(row.field.name)
            side = "high" if deviation > 0 else "low"
            yield f"{row.name} {side}{_bracketed_value(row, line)}"


def _bracketed_value(row: Deviations, line: int) -> str:
    field = row.field
    if row.level is not None:
        shares = field.shares[line]
        return "" if shares is None else f" ({shares[row.level]:.0%})"
    mean = field.mean[line]
    if mean is None:
        return ""
    if field.is_date:
        return f" ({format_date(mean)})"
    return f" ({format_number(mean)} {field.unit}".rstrip() + ")"


class PairedProfile(NamedTuple):
    """A profile, and the matching profile of the party's own rows or None."""

    profile: Profile
    own: Profile | None

    def rows(self, difference: bool = False) -> Iterator[tuple[Any, ...]]:  # noqa: FBT001, FBT002  templates
        """Yield one table row per variable, starting with those that differ most.

        difference: whether the second cell shows how much the clusters differ.
        """
        own_fields = {} if self.own is None else {f.name: f for f in self.own.fields}
        for field in self.profile.fields:
            title = field.title or field.name
            own = own_fields.get(field.name)
            yield (
                f"{title}, {field.unit}" if field.unit else title,
                *[field.difference] * difference,
                *(
                    self._cell(field, own, line)
                    for line in range(len(self.profile.n_rows))
                ),
            )

    def _cell(self, field: FieldProfile, own: FieldProfile | None, line: int) -> str:
        text = profile_cell(field, line) + self._missing_values_clause(field)
        if self.own is None:
            return text
        markup = Markup('{}<br/><span class="soft">{}</span>')
        return markup.format(text, self._own_value(own, line) or "–")

    def _missing_values_clause(self, field: FieldProfile) -> str:
        if not self.profile.is_description:
            return ""
        missing = self.profile.count_missing(field)
        return (
            f"; {format_percent_of(missing, self.profile.n_rows[0])} missing"
            if missing
            else ""
        )

    def _own_value(self, field: FieldProfile | None, line: int) -> str:
        if self.own is None or field is None:
            return ""
        clusters = self.profile.clusters
        if line < len(clusters) and clusters[line] in self.own.clusters:
            own_line = self.own.clusters.index(clusters[line])
            return profile_cell(field, own_line, quartiles=False)
        if line == len(clusters) and self.own.others == self.profile.others:
            return profile_cell(field, len(self.own.clusters), quartiles=False)
        return ""


def pair_profiles(profiles: Sequence[Profile]) -> list[PairedProfile]:
    """Pair each pooled profile with the party's own; unpaired own profiles follow."""
    unpaired = {id(profile): profile for profile in profiles if profile.own}
    pairs = []
    for pooled in (profile for profile in profiles if not profile.own):
        own = None
        if not pooled.rounded:
            candidates = (profile for profile in profiles if profile.own)
            own = next((p for p in candidates if p.column == pooled.column), None)
        unpaired.pop(id(own), None)
        pairs.append(PairedProfile(pooled, own))
    return [*pairs, *(PairedProfile(profile, None) for profile in unpaired.values())]


def rows_without_cluster(n_rows: int) -> str:
    """Return a clause, without a full stop, about own rows that have the label -1."""
    verb = "is" if n_rows == 1 else "are"
    return f"{n_rows:,} of your rows {verb} in no cluster, or did not take part"


def doubts_of(report: RunReport | SessionReport) -> Iterator[str]:
    """Yield caveats about a result, starting with the most specific."""
    if isinstance(report, RunReport):
        yield from report.odd
        if report.without:
            yield f"{rows_without_cluster(report.without)}."
        linked, _, whole = report.linked.partition(" of ")
        if whole and linked != whole:
            yield (
                f"Only {report.linked} of your rows are linked to rows of others. "
                "The clusters describe only these."
            )
    yield from _doubts_of_figures(report.runs)
    for profile in report.profiles:
        if profile.others and not profile.own:
            clusters = ", ".join(map(str, profile.others))
            yield f"The clusters {clusters} are too small to be shown alone and share a line."
    if any(profile.rounded for profile in report.profiles):
        yield "Some profiles are rounded, which hides small differences."
    if report.measured is not None and report.measured[0] < _LOSSLESS:
        low, high = map(format_number, report.measured)
        yield (
            "Clustering the pooled rows may give different clusters. On public data the "
            f"agreement was between {low} and {high}."
        )
    institutions = [seat.who for seat in report.seats if seat.who is not None]
    if unknown := sum(not institution.known for institution in institutions):
        yield f"You do not know the keys of {unknown} of the institutions."
    yield "These clusters were not tested on other data. They show what goes together, not why."


def _doubts_of_figures(runs: Sequence[RunLine]) -> Iterator[str]:
    figures: Mapping[str, Any] = next(
        (run.figures for run in runs if run.chosen or len(runs) == 1), {}
    )
    for name in ("silhouette", "simplified_silhouette"):
        value = figures.get(name)
        if isinstance(value, float) and value < _LEAST_SILHOUETTE:
            yield (
                f"The clusters overlap (silhouette {format_number(value)}). Rows near a border "
                "could just as well belong to the next cluster."
            )
            break
    stability = figures.get("stability")
    if isinstance(stability, float) and stability < _LEAST_STABILITY:
        yield f"Two halves of the rows give different clusters (stability {format_number(stability)})."
    if len(runs) > 1:
        yield (
            "The number of clusters was chosen on the same rows, so its quality measures "
            "look better than they are."
        )


class Suggestion(NamedTuple):
    """A suggested number of clusters, with the reason for it and doubts about it."""

    n_clusters: int
    reason: str
    doubts: tuple[str, ...] = ()


def suggest_run(runs: Sequence[RunLine]) -> Suggestion | None:
    """Return the number of clusters that most quality measures prefer.

    A stable run is preferred to all unstable runs. If several runs are best by equally
    many measures, the run that is best by the first measure is suggested, or else the
    run with the fewest clusters. Returns None if there are fewer than two runs, or no
    quality measures.
    """
    best = {
        name: run
        for name in (*_MEASURES, "xie_beni", "partition_coefficient", "bic", "icl")
        if (run := _best_by(runs, name)) is not None
    }
    if len(runs) < 2 or not best:
        return None
    votes = {run.n_clusters: [n for n, b in best.items() if b is run] for run in runs}
    first = next(iter(best.values()))

    def rank(run: RunLine) -> tuple[bool, int, bool, int]:
        measures = votes[run.n_clusters]
        return (not _is_stable(run), -len(measures), run is not first, run.n_clusters)

    best_run = min(runs, key=rank)
    names = [name_figure(name) for name in votes[best_run.n_clusters]]
    reason = f"best by {_join_names(names)}" if names else "the most stable"
    stability = best_run.figures.get("stability")
    if isinstance(stability, float) and _is_stable(best_run):
        reason += f"; both halves of the rows give these clusters (stability {format_number(stability)})"
    return Suggestion(best_run.n_clusters, reason, tuple(_doubts_of_run(best_run)))


def _best_by(runs: Sequence[RunLine], name: str) -> RunLine | None:
    values = [
        (value, run)
        for run in runs
        if isinstance(value := run.figures.get(name), int | float)
    ]
    if not values:
        return None
    sign = 1 if name in LEAST_IS_BEST else -1
    return min(values, key=lambda pair: (sign * pair[0], pair[1].n_clusters))[1]


def _is_stable(run: RunLine) -> bool:
    stability = run.figures.get("stability")
    return stability is None or stability >= _LEAST_STABILITY


def _doubts_of_run(run: RunLine) -> Iterator[str]:
    if not _is_stable(run):
        value = format_number(run.figures.get("stability"))
        yield f"Two halves of the rows give different clusters (stability {value})."
    if small := [size for size in run.sizes if size <= _SMALL_CLUSTER]:
        yield f"Clusters of {_SMALL_CLUSTER} rows or fewer: {len(small)}."
    if run.figures.get("converged") is False:
        yield "It did not converge."
