"""What to doubt of a result, in plain words: a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from coterie_pages.formatting import number
from coterie_pages.models import RunReport, SessionReport

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
