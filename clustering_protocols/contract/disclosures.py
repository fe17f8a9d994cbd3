"""What a session discloses to whom, and which disclosures may not be combined.

No reader may get two kinds of disclosure about the same rows that together determine
the rows. Terms that would allow it are refused when a session is opened or joined. A
party that has disclosed one kind in an earlier session asks its operator before it
discloses the other.
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
    """The kinds of information about rows that a message, result or release discloses.

    geometry: rows up to a rotation, a reflection and a shift.
    means: numbers in the units of the variables: means, standard deviations,
        covariances, principal axes, regression coefficients, parameters of components.
    values: single variables of rows, exactly, up to sign and shift, or up to a cell. A
        protocol that discloses rows up to a motion also declares this kind, because
        such rows reveal any field whose values are multiples of a coarse step.
    sums: exact linear sums over chosen rows, with the number of rows.
    places: the positions of a party's own rows in a space that several parties share.
    labels: the cluster of each row.
    sizes: the number of rows in each cluster of each run, rounded to multiples of five.
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

    outside: the analyst and the coordinator, taken together.
    group: the parties that hold the variables to which the disclosure refers.
    all: every party, including those that do not hold the variables.
    """

    OUTSIDE = "outside"
    GROUP = "group"
    ALL = "all"


class Disclosure(NamedTuple):
    """A kind of disclosure and the reader who receives it."""

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
"""Descriptions of the kinds, for display."""

_REFUSALS: Final = {
    frozenset({Kind.GEOMETRY, Kind.MEANS}): (
        "release: profiles cannot be published to everybody here. The analyst has the "
        "rows up to a motion, and means and standard deviations of clusters turn them back "
        "into rows. Choose profiles 'members'."
    ),
    frozenset({Kind.PLACES, Kind.MEANS}): (
        "release: profiles cannot be published to everybody here. Parties get positions in the "
        "common space, and means of other columns turn these back into rows. Choose "
        "profiles 'members', or output 'labels' without predictor."
    ),
}
REFUSED: Final = tuple(_REFUSALS)
"""Kinds that no reader may combine: means turn rows without axes back into rows."""


def disclosures_to(reader: Reader, *kinds: Kind) -> frozenset[Disclosure]:
    """Return disclosures of these kinds to one reader."""
    return frozenset(Disclosure(reader, kind) for kind in kinds)


def disclosures_of_release(
    release: Release | None, layout: Layout
) -> frozenset[Disclosure]:
    """Return what a release discloses; empty if no column group can pool its sums."""
    if release is None or not any(map(layout.can_pool, range(layout.n_column_groups))):
        return frozenset()
    disclosures = disclosures_to(Reader.GROUP, Kind.MEANS, Kind.SUMS)
    if release.profiles == "members":
        return disclosures
    return (
        disclosures
        | disclosures_to(Reader.OUTSIDE, Kind.MEANS)
        | disclosures_to(Reader.ALL, Kind.MEANS)
    )


def disclosures_of_preparation(
    plans: Sequence[ColumnPlan], layout: Layout
) -> frozenset[Disclosure]:
    """Return what parties learn from pooled filling values and covariate effects."""
    pooled = any(
        (plan.fills or plan.harmonised.any()) and len(layout.column_group(column)) > 1
        for column, plan in enumerate(plans)
    )
    return (
        disclosures_to(Reader.GROUP, Kind.MEANS, Kind.SUMS) if pooled else frozenset()
    )


def disclosures_of_evaluation(evaluation: Evaluation | None) -> frozenset[Disclosure]:
    """Return what the coordinator reads to choose one of several runs."""
    if evaluation is None:
        return frozenset()
    return disclosures_to(Reader.OUTSIDE, Kind.SIZES)


def check_disclosures(disclosures: Collection[Disclosure]) -> None:
    """Raise :class:`InvalidParameters` if a reader gets kinds it may not combine."""
    for _, kinds in find_clashes(disclosures):
        raise InvalidParameters(_REFUSALS[kinds])


def find_clashes(
    disclosures: Collection[Disclosure],
) -> Iterator[tuple[Reader, frozenset[Kind]]]:
    """Yield each reader with a pair of kinds that it would get but may not combine."""
    for reader in Reader:
        kinds = kinds_read_by(disclosures, reader)
        yield from ((reader, pair) for pair in REFUSED if pair <= kinds)


def kinds_read_by(disclosures: Iterable[Disclosure], reader: Reader) -> frozenset[Kind]:
    """Return the kinds of disclosure that a reader receives."""
    return frozenset(d.kind for d in disclosures if d.reader is reader)


def discloses_rows(disclosures: Iterable[Disclosure], *readers: Reader) -> bool:
    """Return whether one of these readers gets rows, exactly or up to a motion."""
    rows = {Kind.GEOMETRY, Kind.VALUES}
    return any(d.reader in readers and d.kind in rows for d in disclosures)


def analyst_exposures(disclosures: Collection[Disclosure]) -> tuple[Exposure, Exposure]:
    """Return what the analyst can infer by itself, and what together with a party."""
    if discloses_rows(disclosures, Reader.OUTSIDE):
        return Exposure.GEOMETRY, Exposure.ROWS
    if discloses_rows(disclosures, Reader.GROUP, Reader.ALL):
        return Exposure.NOTHING, Exposure.ROWS
    sums = any(d.kind is Kind.SUMS for d in disclosures)
    return Exposure.NOTHING, Exposure.TOTALS if sums else Exposure.NOTHING
