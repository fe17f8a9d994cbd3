"""What a report says of a result: methods, portraits, doubts, and which run to take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from clustering_protocols.numerics.profiles import (
    NO_YES,
    FieldProfile,
    Profile,
    date_of,
)
from clustering_protocols.terms.sections import LEAST_IS_BEST
from clustering_protocols.wire.answers import RunLine
from coterie_pages.formatting import cell, figure, number, share, shown_figures
from coterie_pages.models import RunReport, SessionReport
from coterie_pages.svg import Deviations, deviations

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


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_FAR: Final = 0.5
"""From so many standard deviations on, a mean is worth a word."""
_MOST: Final = 3


def portraits(profiles: Sequence[Profile]) -> Mapping[int, str]:
    """Return of each cluster the fields in which it differs most from all together.

    Of the profiles of all parties; where there is none, of that of the own rows.
    """
    pooled = [each for each in profiles if not each.own] or list(profiles)
    found: dict[int, list[str]] = {}
    for profile in pooled:
        for place, cluster in enumerate(profile.clusters):
            found.setdefault(cluster, []).extend(_farthest(profile, place))
    return {
        cluster: "; ".join(said[:_MOST]) or "near the mean of all in every variable"
        for cluster, said in found.items()
    }


def _farthest(profile: Profile, place: int) -> Iterator[str]:
    """Yield what is said of the fields that lie farthest off, the farthest first."""
    rows = [row for row in _told_once(profile) if row.values[place] is not None]
    rows.sort(key=lambda row: -abs(row.values[place] or 0.0))
    named: set[str] = set()  # of a variable with levels the farthest one alone
    for row in rows:
        far, variable = row.values[place] or 0.0, row.name.rpartition(": ")[0]
        if abs(far) < _FAR or len(named) == _MOST:
            return
        if (variable or row.name) not in named:
            named.add(variable or row.name)
            yield f"{row.name} {'high' if far > 0 else 'low'}{_value(profile, row, place)}"


def _told_once(profile: Profile) -> Iterator[Deviations]:
    """Yield rows of the heat map; of yes and no that of yes alone."""
    binary = {
        f"{field.title or field.name}: {NO_YES[0]}"
        for field in profile.fields
        if field.levels == NO_YES
    }
    return (row for row in deviations(profile) if row.name not in binary)


def _value(profile: Profile, row: Deviations, place: int) -> str:
    """Return the mean or the share in brackets; empty where none is told."""
    for field in profile.fields:
        name = field.title or field.name
        if not field.levels and name == row.name:
            mean = field.mean[place]
            if mean is None:
                return ""
            if field.is_date:
                return f" ({date_of(mean)})"
            return f" ({number(mean)} {field.unit}".rstrip() + ")"
        shares = field.shares[place] if field.levels else None
        for level, part in zip(field.levels, shares or (), strict=False):
            if f"{name}: {level}" == row.name:
                return f" ({part:.0%})"
    return ""


class PairedProfile(NamedTuple):
    """A profile, and that of the own rows over the same variables, if there is one."""

    profile: Profile
    own: Profile | None

    def rows(self, difference: bool = False) -> Iterator[tuple[Any, ...]]:  # noqa: FBT001, FBT002  templates
        """Yield a row of its table for each variable, those that differ most first.

        difference: whether the second cell is the difference between clusters.
        """
        mine = {} if self.own is None else {f.name: f for f in self.own.fields}
        for field in self.profile.fields:
            title = field.title or field.name
            own = mine.get(field.name)
            yield (
                f"{title}, {field.unit}" if field.unit else title,
                *[field.difference] * difference,
                *(
                    self._cell(field, own, place)
                    for place in range(len(self.profile.n_rows))
                ),
            )

    def _cell(self, field: FieldProfile, own: FieldProfile | None, place: int) -> str:
        """Return a variable in one line: of all parties, and below of the own rows."""
        said = cell(field, place) + self._gaps(field)
        if self.own is None:
            return said
        below = Markup('{}<br/><span class="soft">{}</span>')
        return below.format(said, self._own(own, place) or "–")

    def _gaps(self, field: FieldProfile) -> str:
        """Return how many rows of a description have no value."""
        if not self.profile.is_description:
            return ""
        missing = self.profile.missing(field)
        return f"; {share(missing, self.profile.n_rows[0])} missing" if missing else ""

    def _own(self, field: FieldProfile | None, place: int) -> str:
        """Return what the own rows say of a line; empty where they have no such line."""
        if self.own is None or field is None:
            return ""
        clusters = self.profile.clusters
        if place < len(clusters) and clusters[place] in self.own.clusters:
            here = self.own.clusters.index(clusters[place])
            return cell(field, here, quartiles=False)
        same = place == len(clusters) and self.own.others == self.profile.others
        if not same:
            return ""
        return cell(field, len(self.own.clusters), quartiles=False)


def pair_profiles(profiles: Sequence[Profile]) -> list[PairedProfile]:
    """Return each profile of all parties with that of the own rows; then the others."""
    pooled = [each for each in profiles if not each.own]
    alone = [each for each in profiles if each.own]
    found, taken = [], set()
    for profile in pooled:
        mine = None
        if not profile.rounded:
            mine = next((each for each in alone if each.column == profile.column), None)
        if mine is not None:
            taken.add(id(mine))
        found.append(PairedProfile(profile, mine))
    return [*found, *(PairedProfile(e, None) for e in alone if id(e) not in taken)]


_WEAK: Final = 0.25
"""Below, a silhouette shows no substantial structure (Kaufman and Rousseeuw 1990)."""
_UNSTABLE: Final = 0.75
_LOSSLESS: Final = 0.99


def doubts_of(report: RunReport | SessionReport) -> Iterator[str]:
    """Yield what may be wrong with a result, what concerns this result alone first."""
    if isinstance(report, RunReport):
        yield from report.odd
        yield from _own_rows(report)
    yield from _figures(report)
    yield from _small_clusters(report)
    yield from _fidelity(report)
    unknown = sum(
        1 for seat in report.seats if seat.who is not None and not seat.who.known
    )
    if unknown:
        yield f"You do not know the keys of {unknown} of the institutions."
    yield "Nobody has tried these clusters on other data. They say what goes together, not why."


def rows_without_cluster(n_rows: int) -> str:
    """Return what is said of own rows that have the label -1, without a full stop."""
    are = "is" if n_rows == 1 else "are"
    return f"{n_rows:,} of your rows {are} in no cluster, or did not take part"


def _own_rows(report: RunReport) -> Iterator[str]:
    if report.without:
        yield f"{rows_without_cluster(report.without)}."
    linked, _, whole = report.linked.partition(" of ")
    if whole and linked != whole:
        yield (
            f"Only {report.linked} of your rows are linked to rows of others. "
            "The clusters describe these alone."
        )


def _figures(report: RunReport | SessionReport) -> Iterator[str]:
    chosen: dict[str, Any] = next(
        (
            dict(run.figures)
            for run in report.runs
            if run.chosen or len(report.runs) == 1
        ),
        {},
    )
    for name in ("silhouette", "simplified_silhouette"):
        value = chosen.get(name)
        if isinstance(value, float) and value < _WEAK:
            yield (
                f"The clusters overlap (silhouette {number(value)}). Rows near a border "
                "could as well belong to the next cluster."
            )
            break
    stability = chosen.get("stability")
    if isinstance(stability, float) and stability < _UNSTABLE:
        yield f"Each half of the rows gives other clusters (stability {number(stability)})."
    if len(report.runs) > 1:
        yield (
            "The number of clusters was chosen on the same rows. The quality measures "
            "flatter it."
        )


def _small_clusters(report: RunReport | SessionReport) -> Iterator[str]:
    for profile in report.profiles:
        if profile.others and not profile.own:
            named = ", ".join(map(str, profile.others))
            yield f"The clusters {named} are too small to be shown alone: they are one line."
    if any(each.rounded for each in report.profiles):
        yield "Profiles that left their parties are rounded: small differences are not there."


def _fidelity(report: RunReport | SessionReport) -> Iterator[str]:
    if report.measured is not None and report.measured[0] < _LOSSLESS:
        least, most = map(number, report.measured)
        yield (
            "Clustering the pooled rows may give other clusters. On public data the "
            f"agreement was between {least} and {most}."
        )


_MEASURES: Final = (
    "simplified_silhouette",
    "silhouette",
    "calinski_harabasz",
    "davies_bouldin",
    "xie_beni",
    "partition_coefficient",
    "bic",
    "icl",
)
_STABLE: Final = 0.75
"""Below, other rows would give other clusters; see the figure's sentence."""
_SMALL: Final = 10


class Suggestion(NamedTuple):
    """A number of clusters, why it, and what speaks against it."""

    n_clusters: int
    reason: str
    doubts: tuple[str, ...] = ()


def suggest_run(runs: Sequence[RunLine]) -> Suggestion | None:
    """Return the run that most quality measures prefer; None where none compares them.

    Runs that are not stable come behind those that are. Of equal ones the run with the
    better first measure is taken, then that of fewer clusters.
    """
    best = {
        name: run for name in _MEASURES if (run := _best_by(runs, name)) is not None
    }
    if len(runs) < 2 or not best:
        return None
    votes = {run.n_clusters: [n for n, b in best.items() if b is run] for run in runs}
    first = next(iter(best.values()))

    def rank(run: RunLine) -> tuple[bool, int, bool, int]:
        known = votes[run.n_clusters]
        return (not _is_stable(run), -len(known), run is not first, run.n_clusters)

    found = min(runs, key=rank)
    named = [figure(name) for name in votes[found.n_clusters]]
    reason = f"best by {_join(named)}" if named else "the most stable"
    stability = found.figures.get("stability")
    if isinstance(stability, float) and _is_stable(found):
        reason += (
            f"; each half of the rows gives it again (stability {number(stability)})"
        )
    return Suggestion(found.n_clusters, reason, tuple(_doubts(found)))


def _best_by(runs: Sequence[RunLine], name: str) -> RunLine | None:
    known = [
        (value, run)
        for run in runs
        if isinstance(value := run.figures.get(name), int | float)
    ]
    if not known:
        return None
    sign = 1 if name in LEAST_IS_BEST else -1
    return min(known, key=lambda pair: (sign * pair[0], pair[1].n_clusters))[1]


def _is_stable(run: RunLine) -> bool:
    stability = run.figures.get("stability")
    return stability is None or stability >= _STABLE


def _doubts(run: RunLine) -> Iterator[str]:
    if not _is_stable(run):
        value = number(run.figures.get("stability"))
        yield f"Each half of the rows gives other clusters (stability {value})."
    if small := [size for size in run.sizes if size <= _SMALL]:
        yield f"Clusters of {_SMALL} rows or fewer: {len(small)}."
    if run.figures.get("converged") is False:
        yield "It did not converge."
