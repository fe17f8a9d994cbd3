"""Finds columns that look like other units than those of the other parties.

Against the pooled deviation no limit serves: a party with the share f of all rows stands
at most √((1-f)/f) pooled deviations from the pooled mean, whatever its unit. So the
moments of the *others* are computed at home, as the pooled ones less the own ones: both
are known to the party already, and nothing is sent for it. Of two parties the others are
the other one.

A column is suspect where it lies far from the others' and a change of unit explains it:

- it stands ten deviations off, counted in the wider of both rows' deviations five;
- or its mean and deviation are multiples of the others' by nearly one factor;
- or a conversion of the table brings both near to the others': within 10 % where the
  column's name does not speak of the quantity, as some factor is near to most ratios;
- or it spreads thirty times as wide as others that are all far from 0.

Filled gaps are taken out first: of two units the pooled mean lies between both, and a few
gaps filled with it would make both spread so widely that nothing looks apart. A positive
column that spreads by half its mean and more is compared by its logarithms too, as if it
were lognormal: there one group of patients has several times the mean and the deviation of
another. Its logarithms stand 3.5 deviations off, unless its name speaks of the conversion.

Molar masses give the factors between mg/dl and mmol/l. HbA1c: the master equation of
Hoelzel et al., "IFCC reference system for measurement of hemoglobin A1c in human blood",
Clinical Chemistry 50, 2004.

The limits were chosen in November 2026 by false alarms and misses on public sets. A
column that is constant at this party or at the others says nothing of its unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from clustering_protocols.contract import PartyContext
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.imputation import gaps_of
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.session_risks import OTHER_UNITS

_APART, _DISJOINT = 10.0, 5.0  # the larger and the smaller of both distances
_FAR: Final = 5.0
_PER_DISTANCE, _MOST = 0.04, 0.3  # how far the two factors may differ
_WIDE, _WIDE_APART = 30.0, 20.0
_SKEWED, _SKEWED_APART = 0.5, 3.5
_MOST_NAMED: Final = 5

_CONSTANT: Final = 1e-3  # of the mean
_EPSILON: Final = 64 * float(np.finfo(np.float64).eps)


class _Limits(NamedTuple):
    """How near to the others' a conversion has to bring own moments.

    distance: in deviations, before it; mean: in deviations, after it; and the logarithms
    of the ratios of deviations and of means, after it.
    """

    distance: float
    mean: float
    deviation: float
    ratio: float


_NAMED: Final = _Limits(1.2, 1.0, 0.4, 0.4)
_UNNAMED: Final = _Limits(4.0, 0.5, 0.1, 0.1)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A column that holds a measurement.

    place: among the columns of the session.
    words: its name, its title and its unit: what it is about.
    is_logarithm: whether its values are logarithms: there another unit adds a number.
    """

    place: int
    name: str
    words: str
    is_logarithm: bool = False


@dataclass(frozen=True, slots=True)
class Suspect:
    """A column in which own rows look like those of another unit.

    ``conversion`` turns own values into those of the others, if one of the table does;
    ``is_named`` says whether the column's name speaks of its quantity.
    """

    name: str
    own: float
    others: float
    conversion: Conversion | None
    is_named: bool = False

    def sentence(self, whose: str) -> str:
        """Return what is seen, for the operator's own screen."""
        seen = (
            f"{self.name!r}: your mean is {self.own:.4g}, that of {whose} "
            f"{self.others:.4g}."
        )
        known = self.conversion
        if known is not None and not known.quantity:
            return f"{seen} The factor is likely {known.factor:g}."
        if known is not None and self.is_named:
            return (
                f"{seen} Likely: {known.quantity} in {known.first} here, in "
                f"{known.second} there ({known.formula})."
            )
        if known is not None:
            return (
                f"{seen} From {known.first} to {known.second}, as of "
                f"{known.quantity}, it is {known.formula}."
            )
        if self.own * self.others > 0:
            return f"{seen} The factor is about {self.others / self.own:.3g}."
        return seen


class ColumnMoments(Protocol):
    """Moments of all columns: rows, and float64 arrays of shape (m,)."""

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        ...

    @property
    def mean(self) -> FloatArray:
        """Return the means."""
        ...

    @property
    def deviations(self) -> FloatArray:
        """Return the sums of squared deviations from the mean."""
        ...


class Distribution(NamedTuple):
    """Means and standard deviations (m,) of rows; 0 of a column that is constant."""

    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, moments: ColumnMoments) -> Distribution:
        """Return that of moments."""
        return cls(moments.mean, np.sqrt(moments.deviations / moments.n_rows))

    def without(
        self, n_rows: int, n_filled: IntArray, fills: FloatArray
    ) -> Distribution:
        """Return that of the values that are there.

        n_filled: int64 (m,); how many of the rows have the value of ``fills`` (m,)
            instead of none. Where all have, the column counts as constant.
        """
        n = np.maximum(n_rows - n_filled, 1)
        mean = (n_rows * self.mean - n_filled * fills) / n
        squares = n_rows * np.square(self.deviation)
        rest = squares - n_filled * np.square(fills - self.mean)
        rest -= n * np.square(mean - self.mean)
        varies = (rest > _EPSILON * squares) & (n_filled < n_rows)
        return Distribution(mean, np.sqrt(np.where(varies, rest, 0.0) / n))


def others_of(own: ColumnMoments, pooled: ColumnMoments) -> Distribution:
    """Return the moments of all rows but a party's own.

    Where own values are so large that rounding hides how the others' spread, what it
    hides stands for their deviation.

    Raises ValueError if there are no others.
    """
    n = pooled.n_rows - own.n_rows
    if n <= 0:
        raise ValueError("there are no other rows")
    mean = (pooled.n_rows * pooled.mean - own.n_rows * own.mean) / n
    between = own.n_rows * np.square(own.mean - pooled.mean)
    between += n * np.square(mean - pooled.mean)
    rest = pooled.deviations - own.deviations - between
    noise = pooled.n_rows * np.abs(pooled.mean * (own.mean - mean))
    noise = _EPSILON * (pooled.deviations + noise)
    hidden = np.sqrt(noise / n)
    is_zero = np.abs(mean) <= _EPSILON * np.abs(pooled.mean) * pooled.n_rows / n
    constant = (rest <= noise) & (is_zero | (hidden < _CONSTANT * np.abs(mean)))
    deviation = np.sqrt(np.maximum(rest, noise) / n)
    return Distribution(mean, np.where(constant, 0.0, deviation))


def columns_of(
    names: Sequence[str],
    plan: ColumnPlan | None = None,
    dictionary: Schema | None = None,
) -> list[Measurement]:
    """Return the columns that are measured in a unit: no dates, levels or indicators.

    names: the columns of the session.
    """
    fields = {} if dictionary is None else {f.name: f for f in dictionary.fields}
    found = []
    for place, name in enumerate(names):
        field = fields.get(name)
        if field is not None and not field.is_measured:
            continue
        if field is None and plan is not None:  # an indicator
            continue
        words = name if field is None else f"{name} {field.title}"
        is_logarithm = plan is not None and plan.preparation.of(fields[name]).log1p
        found.append(Measurement(place, name, words, is_logarithm))
    return found


def suspects(
    columns: Sequence[Measurement], own: Distribution, others: Distribution
) -> Iterator[Suspect]:
    """Yield the columns that look like other units."""
    for column in columns:
        at = column.place
        here = _One(float(own.mean[at]), float(own.deviation[at]))
        there = _One(float(others.mean[at]), float(others.deviation[at]))
        if 0.0 in {here.deviation, there.deviation}:
            continue
        if _distances(here, there)[1] < _NAMED.distance:
            continue
        found = _find_conversion(column, here, there)
        named = found is not None and found.is_named(column.words)
        is_plain = not (named or column.is_logarithm)
        if is_plain and not _are_logarithms_apart(here, there):
            continue
        if found is not None or _is_apart(column, here, there):
            yield Suspect(column.name, here.mean, there.mean, found, named)


def ask(
    context: PartyContext,
    names: Sequence[str],
    own: ColumnMoments,
    pooled: ColumnMoments,
) -> str:
    """Return what to ask the operator before rows are used.

    Nothing where they have decided already, where the party is alone, or where no
    column is suspect.
    """
    if context.choices.get(OTHER_UNITS) or pooled.n_rows <= own.n_rows:
        return ""
    terms, slot = context.session.terms, context.slot.name
    columns = columns_of(names, terms.plan(slot), terms.dictionary_of(slot))
    here, there = Distribution.of(own), others_of(own, pooled)
    if gaps := gaps_of(context):
        n_others = pooled.n_rows - own.n_rows
        here = here.without(own.n_rows, gaps.own, gaps.fills)
        there = there.without(n_others, gaps.others, gaps.fills)
    return question(columns, here, there)


def question(
    columns: Sequence[Measurement],
    own: Distribution,
    others: Distribution,
    whose: str = "the others",
) -> str:
    """Return the question of the columns that are suspect; nothing where none is.

    ``whose``: how the operator knows the rows that the own ones are compared with.
    """
    found = list(suspects(columns, own, others))
    if not found:
        return ""
    said = [each.sentence(whose) for each in found[:_MOST_NAMED]]
    if len(found) > _MOST_NAMED:
        said.append(f"{len(found) - _MOST_NAMED} more columns look alike.")
    return (
        f"Some columns may be in other units here. {' '.join(said)} Mend the unit in "
        f"your table, or allow it: --choice {OTHER_UNITS}=true."
    )


class _One(NamedTuple):
    """Mean and deviation of one column."""

    mean: float
    deviation: float


def _distances(own: _One, others: _One) -> tuple[float, float]:
    """Return by how many deviations the means differ: of the wider rows, and the other."""
    apart = abs(own.mean - others.mean)
    with np.errstate(divide="ignore", over="ignore"):
        ratios = apart / np.array([own.deviation, others.deviation])
    return float(ratios.min()), float(ratios.max())


def _are_logarithms_apart(own: _One, others: _One) -> bool:
    """Return whether the logarithms of a skewed column differ; True of another column.

    It is skewed where both sides are: one value far off widens one side alone.
    """
    means, deviations = np.array([own, others]).T
    if (means <= 0).any() or (deviations < _SKEWED * means).any():
        return True
    variances = np.log1p(np.square(deviations / means))
    logs = np.log(means) - variances / 2
    return bool(abs(logs[0] - logs[1]) >= _SKEWED_APART * np.sqrt(variances.max()))


def _is_apart(column: Measurement, own: _One, others: _One) -> bool:
    """Return whether a column is so far off that no mixture of cases explains it."""
    least, most = _distances(own, others)
    if most >= _APART and least >= _DISJOINT:
        return True
    wide = own.deviation >= _WIDE * others.deviation
    if wide and most >= _WIDE_APART and abs(others.mean) >= others.deviation:
        return True
    if column.is_logarithm or most < _FAR or own.mean * others.mean <= 0:
        return False
    means = np.log(own.mean / others.mean)
    deviations = np.log(own.deviation / others.deviation)
    return bool(abs(means - deviations) <= min(_PER_DISTANCE * most, _MOST))


def _find_conversion(column: Measurement, own: _One, others: _One) -> Conversion | None:
    """Return the conversion that brings own moments nearest to the others', if any does.

    One of which the column's name speaks goes before all others.
    """
    _, most = _distances(own, others)
    best: tuple[bool, float, Conversion] | None = None
    for each in CONVERSIONS:
        named = each.is_named(column.words)
        limits = _NAMED if named else _UNNAMED
        if most < limits.distance or (each.offset and not named):
            continue  # a shift fits too much: it counts where the name speaks of it
        misfit = _misfit(column, each, own, others, limits)
        key = (not named, misfit)
        if misfit <= 1.0 and (best is None or key < best[:2]):
            best = (*key, each)
    return None if best is None else best[2]


def _misfit(
    column: Measurement,
    conversion: Conversion,
    own: _One,
    others: _One,
    limits: _Limits,
) -> float:
    """Return how far a conversion leaves own moments from the others'; 1 is the limit."""
    if column.is_logarithm:
        if conversion.offset:
            return np.inf
        turned = _One(own.mean + float(np.log(conversion.factor)), own.deviation)
        ratio = 0.0
    else:
        turned = _One(
            conversion.factor * own.mean + conversion.offset,
            conversion.factor * own.deviation,
        )
        if turned.mean * others.mean <= 0:
            return np.inf
        ratio = float(np.log(turned.mean / others.mean))
    mean = (turned.mean - others.mean) / others.deviation
    deviation = float(np.log(turned.deviation / others.deviation))
    parts = (mean / limits.mean, deviation / limits.deviation, ratio / limits.ratio)
    return float(np.hypot(np.hypot(parts[0], parts[1]), parts[2]))


_SHORT: Final = 3  # letters of a stem that has to be a whole word


@dataclass(frozen=True, slots=True)
class Conversion:
    """Two units of a quantity: ``second = factor * first + offset``.

    quantity: empty of units that measure many things.
    stems: what the name of a column of the quantity holds, in lower case.
    """

    quantity: str
    first: str
    second: str
    factor: float
    offset: float = 0.0
    stems: tuple[str, ...] = ()

    @property
    def inverse(self) -> Conversion:
        """Return the same units the other way round."""
        return Conversion(
            self.quantity,
            self.second,
            self.first,
            1.0 / self.factor,
            -self.offset / self.factor,
            self.stems,
        )

    @property
    def name(self) -> str:
        """Return what people call it in a file: ``HbA1c, % to mmol/mol``."""
        return f"{self.quantity}, {self.first} to {self.second}"

    @property
    def formula(self) -> str:
        """Return what to do with a value of the first unit, for people."""
        sign = "+" if self.offset > 0 else "-"
        added = f" {sign} {abs(self.offset):.4g}" if self.offset else ""
        return f"× {self.factor:.4g}{added}"

    def is_named(self, text: str) -> bool:
        """Return whether a column's name or title speaks of the quantity."""
        folded = text.casefold()
        words = set(re.split(r"[\W_]+", folded))
        return any(
            stem in words if len(stem) <= _SHORT else stem in folded
            for stem in self.stems
        )


_PAIRS: Final = (
    Conversion("HbA1c", "%", "mmol/mol", 10.929, -23.5, ("hba1c", "a1c", "hb_a1c")),
    Conversion("glucose", "mmol/l", "mg/dl", 18.016, 0.0, ("gluc", "gluk", "glyc")),
    Conversion("creatinine", "mg/dl", "µmol/l", 88.42, 0.0, ("creat", "kreat", "crea")),
    Conversion("cholesterol", "mmol/l", "mg/dl", 38.67, 0.0, ("chol", "hdl", "ldl")),
    Conversion("triglycerides", "mmol/l", "mg/dl", 88.57, 0.0, ("trig", "tg")),
    Conversion("bilirubin", "mg/dl", "µmol/l", 17.1, 0.0, ("bili",)),
    Conversion("urea", "mmol/l", "mg/dl", 6.006, 0.0, ("urea", "harnstoff")),
    Conversion("urea nitrogen", "mmol/l", "mg/dl", 2.801, 0.0, ("bun", "urea")),
    Conversion("uric acid", "mg/dl", "µmol/l", 59.48, 0.0, ("uric", "urat", "harns")),
    Conversion("calcium", "mmol/l", "mg/dl", 4.008, 0.0, ("calc", "kalz", "ca")),
    Conversion("phosphate", "mmol/l", "mg/dl", 3.097, 0.0, ("phos",)),
    Conversion("magnesium", "mmol/l", "mg/dl", 2.431, 0.0, ("magnes", "mg")),
    Conversion("haemoglobin", "mmol/l", "g/dl", 1.611, 0.0, ("haemog", "hemog", "hb")),
    Conversion("C-peptide", "nmol/l", "ng/ml", 3.02, 0.0, ("pept", "cpep")),
    Conversion("insulin", "µU/ml", "pmol/l", 6.0, 0.0, ("insulin",)),
    Conversion("vitamin D", "ng/ml", "nmol/l", 2.496, 0.0, ("vitamin_d", "vitd", "25oh")),
    Conversion("temperature", "°C", "°F", 1.8, 32.0, ("temp", "fever", "fieber")),
    Conversion("weight", "kg", "pounds", 2.2046, 0.0, ("weight", "gewicht", "mass", "wt")),
    Conversion("length", "inches", "cm", 2.54, 0.0, ("height", "length", "waist", "size")),
    Conversion("length", "feet", "m", 0.3048, 0.0, ("height", "length")),
    Conversion("length", "feet", "cm", 30.48, 0.0, ("height", "length")),
    Conversion("pressure", "kPa", "mmHg", 7.5006, 0.0, ("press", "pco2", "po2", "sbp", "dbp", "bp")),
    Conversion("time", "years", "months", 12.0, 0.0, ("age", "alter", "duration", "time")),
    Conversion("time", "years", "days", 365.25, 0.0, ("age", "alter", "duration", "time")),
    Conversion("time", "hours", "minutes", 60.0, 0.0, ("duration", "time", "dauer")),
    Conversion("", "one unit", "its tenth", 10.0),
    Conversion("", "one unit", "its hundredth", 100.0),
    Conversion("", "one unit", "its thousandth", 1e3),
    Conversion("", "one unit", "its millionth", 1e6),
)  # fmt: skip

CONVERSIONS: Final[Sequence[Conversion]] = tuple(
    each for pair in _PAIRS for each in (pair, pair.inverse)
)
"""Every pair of units, in both directions."""


def find_conversion(name: str) -> Conversion | None:
    """Return the conversion of a name, whatever its case; None if there is none."""
    wanted = " ".join(name.casefold().split())
    known = (each for each in CONVERSIONS if each.quantity)
    return next((each for each in known if each.name.casefold() == wanted), None)
