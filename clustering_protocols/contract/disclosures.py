"""Disclosures of a session, by kind and by reader, and clashes between them.

No reader gets two kinds about the same rows that together determine the rows. Terms
that give both are refused when a session is opened or joined. A party that gave one
kind asks its operator before it gives the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.suitability import Exposure
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.terms import Layout


class Kind(StrEnum):
    """Kinds of disclosures about rows by a message, a result or a release.

    geometry: rows up to a rotation, a reflection and a shift.
    means: numbers in the units of the variables: means, spreads, covariances, principal
    axes, regression coefficients, parameters of components.
    values: single variables of rows, exactly, up to sign and shift, or up to a cell.
        Rows up to a motion also reveal fields whose values come in coarse steps.
    sums: exact linear sums of chosen rows, with their number.
    places: where a party's own rows lie in a space that several parties share.
    labels: the cluster of each row.
    sizes: how many rows each cluster of each run has, rounded to fives.
    """

    GEOMETRY = "geometry"
    MEANS = "means"
    VALUES = "values"
    SUMS = "sums"
    PLACES = "places"
    LABELS = "labels"
    SIZES = "sizes"


class Reader(StrEnum):
    """The reader of a disclosure.

    outside: analyst and coordinator, together.
    group: parties that hold the same variables; the disclosure is of these variables.
    all: every party, also of variables that it does not hold.
    """

    OUTSIDE = "outside"
    GROUP = "group"
    ALL = "all"


class Disclosure(NamedTuple):
    """A kind of disclosure, and the reader who gets it."""

    reader: Reader
    kind: Kind


SENTENCES: Final = {
    Kind.GEOMETRY: "rows up to a rotation, a reflection and a shift",
    Kind.MEANS: "means and standard deviations in the units of the variables",
    Kind.VALUES: "single variables of rows, up to sign and shift or up to a cell",
    Kind.SUMS: "exact sums of rows, with their number",
    Kind.PLACES: "own rows in a shared space",
    Kind.LABELS: "the cluster of each row",
    Kind.SIZES: "rows in each cluster of each run, rounded to fives",
}
"""What each kind is, for people."""

_REFUSALS: Final = {
    frozenset({Kind.GEOMETRY, Kind.MEANS}): (
        "release: profiles cannot be published to everybody here. The analyst has the "
        "rows up to a motion, and means and standard deviations of clusters turn them back "
        "into rows. Take profiles 'members'."
    ),
    frozenset({Kind.PLACES, Kind.MEANS}): (
        "release: profiles cannot be published to everybody here. Parties get places in the "
        "common space, and means of other columns turn these back into rows. Take "
        "profiles 'members', or output 'labels' without predictor."
    ),
}
REFUSED: Final = tuple(_REFUSALS)
"""Kinds that no reader may have together: means turn rows without axes back into rows."""


class Clash(NamedTuple):
    """Two kinds that one reader would have together, but must not."""

    reader: Reader
    kinds: frozenset[Kind]


def to(reader: Reader, *kinds: Kind) -> frozenset[Disclosure]:
    """Return the disclosures of these kinds to one reader."""
    return frozenset(Disclosure(reader, kind) for kind in kinds)


def of_release(release: Release | None, layout: Layout) -> frozenset[Disclosure]:
    """Return the disclosures of a release; none if no column group pools sums."""
    if release is None or not any(map(layout.adds_up, range(layout.n_column_groups))):
        return frozenset()
    disclosures = to(Reader.GROUP, Kind.MEANS, Kind.SUMS)
    if release.profiles == "members":
        return disclosures
    return disclosures | to(Reader.OUTSIDE, Kind.MEANS) | to(Reader.ALL, Kind.MEANS)


def of_runs(evaluation: Evaluation | None) -> frozenset[Disclosure]:
    """Return the disclosures of all runs except the selected one."""
    return to(Reader.OUTSIDE, Kind.SIZES) if evaluation else frozenset()


def of_preparation(
    plans: Sequence[ColumnPlan], layout: Layout
) -> frozenset[Disclosure]:
    """Return what pooled fill values and effects of covariates show to parties."""
    pooled = any(
        (plan.fills or plan.harmonised.any()) and len(layout.column_group(column)) > 1
        for column, plan in enumerate(plans)
    )
    return to(Reader.GROUP, Kind.MEANS, Kind.SUMS) if pooled else frozenset()


def check_disclosures(disclosures: Collection[Disclosure]) -> None:
    """Raise :class:`InvalidParameters`, with what to change, if kinds clash."""
    for clash in clashes(disclosures):
        raise InvalidParameters(_REFUSALS[clash.kinds])


def clashes(disclosures: Collection[Disclosure]) -> Iterator[Clash]:
    """Yield the pairs of kinds that a reader would get but may not have together."""
    for reader in Reader:
        kinds = kinds_of(disclosures, reader)
        yield from (Clash(reader, pair) for pair in REFUSED if pair <= kinds)


def kinds_of(disclosures: Iterable[Disclosure], reader: Reader) -> frozenset[Kind]:
    """Return the kinds that a reader gets."""
    return frozenset(d.kind for d in disclosures if d.reader is reader)


def opens_rows(disclosures: Iterable[Disclosure], *readers: Reader) -> bool:
    """Return whether one of these readers gets others' rows, exactly or up to a motion."""
    rows = {Kind.GEOMETRY, Kind.VALUES}
    return any(d.reader in readers and d.kind in rows for d in disclosures)


def exposures(disclosures: Collection[Disclosure]) -> tuple[Exposure, Exposure]:
    """Return what the analyst can infer besides the result: alone, and with a party."""
    if opens_rows(disclosures, Reader.OUTSIDE):
        return Exposure.GEOMETRY, Exposure.ROWS
    if opens_rows(disclosures, Reader.GROUP, Reader.ALL):
        return Exposure.NOTHING, Exposure.ROWS
    sums = any(d.kind is Kind.SUMS for d in disclosures)
    return Exposure.NOTHING, Exposure.TOTALS if sums else Exposure.NOTHING
