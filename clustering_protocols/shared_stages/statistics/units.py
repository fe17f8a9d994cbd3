"""Detection of columns that seem to be in units other than those of the other parties.

A limit in pooled deviations would not work: whatever its unit, a party with a fraction f
of all rows is at most √((1-f)/f) pooled deviations away from the pooled mean. So each
party derives the moments of all *other* rows from the pooled moments and its own, which
needs no message.

A column is suspect if its values are far from those of the others, and if a change of
unit explains the difference in one of these ways:

- the means differ by ten times the smaller and five times the larger deviation;
- the means differ by at least five times the smaller deviation, and mean and deviation
  differ from those of the others by nearly the same factor;
- a known conversion brings mean and deviation close to those of the others: within 10 %
  if the column's name does not suggest the quantity, because most ratios are close to
  some factor;
- the deviation is at least thirty times that of the others, the means differ by at
  least twenty deviations of the others, and the mean of the others is at least one of
  their deviations from 0.

Filled gaps are removed first. If there are two units, the pooled mean lies between the
parties' values, and a few gaps filled with it would widen both distributions until they
overlap. A positive column whose deviation is at least half its mean is also compared by
its logarithms, as if it were lognormal, because one group of patients may then have
several times the mean and the deviation of another. Unless the name of such a column
suggests the conversion, the logarithms must differ by 3.5 deviations.

The factors between mg/dl and mmol/l are derived from molar masses. For HbA1c, see the
master equation of Hoelzel et al., "IFCC reference system for measurement of hemoglobin
A1c in human blood", Clinical Chemistry 50, 2004. The limits were chosen in November
2026 by false alarms and misses on public data sets. A column that is constant at this
party, or at all others, does not reveal its unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.contract import PartyContext
from clustering_protocols.numerics.moments import Moments
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.imputation import find_filled_gaps
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.session_risks import OTHER_UNITS

_APART, _DISJOINT = 10.0, 5.0  # the larger and the smaller of both distances
_FAR: Final = 5.0
_PER_DISTANCE, _MAX_DIFFERENCE = 0.04, 0.3  # of the logarithms of both factors
_WIDE, _WIDE_APART = 30.0, 20.0
_SKEWED, _SKEWED_APART = 0.5, 3.5
_MOST_NAMED: Final = 5

_CONSTANT: Final = 1e-3  # of the mean
_EPSILON: Final = 64 * float(np.finfo(np.float64).eps)


class _Limits(NamedTuple):
    """Limits on the difference between a party's moments and those of the others.

    distance: the smallest distance of the means before a conversion, in units of the
        smaller deviation.
    mean: the largest distance of the means after a conversion, in deviations of the
        others.
    deviation: the largest logarithm of the ratio of deviations after a conversion.
    ratio: the largest logarithm of the ratio of means after a conversion.
    """

    distance: float
    mean: float
    deviation: float
    ratio: float


_MATCHING_NAME: Final = _Limits(1.2, 1.0, 0.4, 0.4)
_ANY_NAME: Final = _Limits(4.0, 0.5, 0.1, 0.1)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A column that holds a measurement in some unit.

    index: its position among the columns of the session.
    description: its name and title, which may contain the unit.
    is_logarithm: whether its values are logarithms; another unit then adds a constant.
    """

    index: int
    name: str
    description: str
    is_logarithm: bool = False


class Distribution(NamedTuple):
    """Mean and standard deviation (m,) of each column; the deviation of constants is 0."""

    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def from_moments(cls, moments: Moments) -> Distribution:
        """Return the distribution that has these moments."""
        return cls(moments.mean, moments.spread)

    def without_fills(
        self, n_rows: int, n_filled: IntArray, fills: FloatArray
    ) -> Distribution:
        """Return the distribution of the values without filled gaps.

        n_filled: int64 (m,); how many gaps of each column were filled with the value in
            ``fills`` (m,). A column that consists only of gaps counts as constant.
        """
        n = np.maximum(n_rows - n_filled, 1)
        mean = (n_rows * self.mean - n_filled * fills) / n
        pooled_squares = n_rows * np.square(self.deviation)
        squares = pooled_squares - n_filled * np.square(fills - self.mean)
        squares -= n * np.square(mean - self.mean)
        varies = (squares > _EPSILON * pooled_squares) & (n_filled < n_rows)
        return Distribution(mean, np.sqrt(np.where(varies, squares, 0.0) / n))


def foreign_distribution(own: Moments, pooled: Moments) -> Distribution:
    """Return the distribution of all rows except those of this party.

    If this party's values are so large that rounding hides the deviation of the others,
    the rounding error is returned in its place.

    Raises ValueError if there are no other rows.
    """
    n = pooled.n_rows - own.n_rows
    if n <= 0:
        raise ValueError("there are no other rows")
    mean = (pooled.n_rows * pooled.mean - own.n_rows * own.mean) / n
    between_squares = own.n_rows * np.square(own.mean - pooled.mean)
    between_squares += n * np.square(mean - pooled.mean)
    squares = pooled.deviations - own.deviations - between_squares
    noise = pooled.n_rows * np.abs(pooled.mean * (own.mean - mean))
    noise = _EPSILON * (pooled.deviations + noise)
    resolution = np.sqrt(noise / n)
    is_zero = np.abs(mean) <= _EPSILON * np.abs(pooled.mean) * pooled.n_rows / n
    constant = (squares <= noise) & (is_zero | (resolution < _CONSTANT * np.abs(mean)))
    deviation = np.sqrt(np.maximum(squares, noise) / n)
    return Distribution(mean, np.where(constant, 0.0, deviation))


def measured_columns(
    names: Sequence[str], plan: ColumnPlan | None, dictionary: Schema | None
) -> list[Measurement]:
    """Return the columns that have a unit, which dates, levels and indicators do not.

    names: the names of all columns of the session.
    """
    fields = {} if dictionary is None else {f.name: f for f in dictionary.fields}
    columns = []
    for index, name in enumerate(names):
        field = fields.get(name)
        if field is not None and not field.is_measured:
            continue
        if field is None and plan is not None:  # an indicator of a level
            continue
        description = name if field is None else f"{name} {field.title}"
        is_logarithm = plan is not None and plan.preparation.of(fields[name]).log1p
        columns.append(Measurement(index, name, description, is_logarithm))
    return columns


def ask_about_units(
    context: PartyContext, names: Sequence[str], own: Moments, pooled: Moments
) -> str:
    """Return the question that the operator must answer before rows are used.

    It is empty if the operator has already decided, if the party is alone in its column
    group, or if no column is suspect.
    """
    if context.choices.get(OTHER_UNITS) or pooled.n_rows <= own.n_rows:
        return ""
    terms, slot = context.session.terms, context.slot.name
    columns = measured_columns(names, terms.plan(slot), terms.dictionary_of(slot))
    own_rows, other_rows = (
        Distribution.from_moments(own),
        foreign_distribution(own, pooled),
    )
    if gaps := find_filled_gaps(context):
        n_other = pooled.n_rows - own.n_rows
        own_rows = own_rows.without_fills(own.n_rows, gaps.n_own, gaps.fills)
        other_rows = other_rows.without_fills(n_other, gaps.n_foreign, gaps.fills)
    return build_unit_question(columns, own_rows, other_rows)


def build_unit_question(
    columns: Sequence[Measurement],
    own: Distribution,
    foreign: Distribution,
    reference: str = "the others",
) -> str:
    """Return the question about suspect columns, or an empty string if there are none.

    reference: a name for the rows with which the party's rows are compared.
    """
    doubts = [_doubt_about(column, own, foreign, reference) for column in columns]
    sentences = list(filter(None, doubts))
    if not sentences:
        return ""
    if n_more := len(sentences[_MOST_NAMED:]):
        more = f"{n_more} more columns raise the same doubt."
        sentences = [*sentences[:_MOST_NAMED], more]
    return (
        f"Some columns may be in different units here. {' '.join(sentences)} Correct the unit in "
        "your table."
    )


def _doubt_about(
    column: Measurement, own: Distribution, foreign: Distribution, reference: str
) -> str:
    """Describe how a party's values differ if they seem to be in another unit, or "".

    reference: a name for the rows with which the party's rows are compared.
    """
    own_column, other_column = (
        _Column(float(rows.mean[column.index]), float(rows.deviation[column.index]))
        for rows in (own, foreign)
    )
    if 0.0 in {own_column.deviation, other_column.deviation}:
        return ""
    if _distances_of_means(own_column, other_column)[1] < _MATCHING_NAME.distance:
        return ""
    conversion = _find_conversion(column, own_column, other_column)
    name_fits = conversion is not None and conversion.matches(column.description)
    is_plain = not (name_fits or column.is_logarithm)
    if is_plain and not _are_logarithms_apart(own_column, other_column):
        return ""
    if conversion is None and not _is_apart(column, own_column, other_column):
        return ""
    means = (
        f"{column.name!r}: your mean is {own_column.mean:.4g}, that of {reference} "
        f"{other_column.mean:.4g}."
    )
    if conversion is None:
        if own_column.mean * other_column.mean <= 0:
            return means
        return f"{means} The factor is about {other_column.mean / own_column.mean:.3g}."
    if not conversion.quantity:
        return f"{means} The factor is likely {conversion.factor:g}."
    if name_fits:
        return (
            f"{means} Likely: {conversion.quantity} in {conversion.first} here, in "
            f"{conversion.second} there ({conversion.formula})."
        )
    return (
        f"{means} A conversion of {conversion.quantity} from {conversion.first} to "
        f"{conversion.second} would fit ({conversion.formula})."
    )


class _Column(NamedTuple):
    """The mean and standard deviation of a single column."""

    mean: float
    deviation: float


def _distances_of_means(own: _Column, foreign: _Column) -> tuple[float, float]:
    """Return the distance of the means, divided by the larger and smaller deviation."""
    distance = abs(own.mean - foreign.mean)
    with np.errstate(divide="ignore", over="ignore"):
        ratios = distance / np.array([own.deviation, foreign.deviation])
    return float(ratios.min()), float(ratios.max())


def _are_logarithms_apart(own: _Column, foreign: _Column) -> bool:
    """Return whether the logarithms of a skewed column differ; True if it is not skewed.

    The values must be skewed on both sides, since an outlier would widen only one.
    """
    means, deviations = np.array([own, foreign]).T
    if (means <= 0).any() or (deviations < _SKEWED * means).any():
        return True
    variances = np.log1p(np.square(deviations / means))
    logs = np.log(means) - variances / 2
    return bool(abs(logs[0] - logs[1]) >= _SKEWED_APART * np.sqrt(variances.max()))


def _is_apart(column: Measurement, own: _Column, foreign: _Column) -> bool:
    """Return whether a column differs more than a different case mix would explain."""
    near, far = _distances_of_means(own, foreign)
    if far >= _APART and near >= _DISJOINT:
        return True
    wide = own.deviation >= _WIDE * foreign.deviation
    if wide and far >= _WIDE_APART and abs(foreign.mean) >= foreign.deviation:
        return True
    if column.is_logarithm or far < _FAR or own.mean * foreign.mean <= 0:
        return False
    means = np.log(own.mean / foreign.mean)
    deviations = np.log(own.deviation / foreign.deviation)
    return bool(abs(means - deviations) <= min(_PER_DISTANCE * far, _MAX_DIFFERENCE))


def _find_conversion(
    column: Measurement, own: _Column, foreign: _Column
) -> Conversion | None:
    """Return the conversion that brings ``own`` closest to ``foreign``, or None.

    Conversions that the column's name suggests take precedence.
    """
    _, distance = _distances_of_means(own, foreign)
    best: tuple[bool, float, Conversion] | None = None
    for conversion in CONVERSIONS:
        name_fits = conversion.matches(column.description)
        limits = _MATCHING_NAME if name_fits else _ANY_NAME
        if distance < limits.distance or (conversion.offset and not name_fits):
            continue  # conversions with an offset would fit too often
        misfit = _conversion_misfit(column, conversion, own, foreign, limits)
        key = (not name_fits, misfit)
        if misfit <= 1.0 and (best is None or key < best[:2]):
            best = (*key, conversion)
    return None if best is None else best[2]


def _conversion_misfit(
    column: Measurement,
    conversion: Conversion,
    own: _Column,
    foreign: _Column,
    limits: _Limits,
) -> float:
    """Return how far converted moments are from ``foreign``; at most 1 is accepted."""
    if column.is_logarithm:
        if conversion.offset:
            return np.inf
        converted = _Column(own.mean + float(np.log(conversion.factor)), own.deviation)
        ratio = 0.0
    else:
        converted = _Column(
            conversion.factor * own.mean + conversion.offset,
            conversion.factor * own.deviation,
        )
        if converted.mean * foreign.mean <= 0:
            return np.inf
        ratio = float(np.log(converted.mean / foreign.mean))
    mean = (converted.mean - foreign.mean) / foreign.deviation
    deviation = float(np.log(converted.deviation / foreign.deviation))
    parts = (mean / limits.mean, deviation / limits.deviation, ratio / limits.ratio)
    return float(np.hypot(np.hypot(parts[0], parts[1]), parts[2]))


_SHORT: Final = 3  # a stem of at most this many letters must match a whole word
_CAMEL_CASE: Final = re.compile(r"(?<=[^\W\d_A-Z]{2})(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion between units of a quantity: ``second = factor * first + offset``.

    quantity: what is measured; empty for conversions by a power of ten.
    stems: lower-case beginnings of words in column names that suggest this quantity.
        A stem after ``*`` may also be within a word, such as a German compound. One
        after ``^`` must be the first word of the text, because it is also a unit.
    """

    quantity: str
    first: str
    second: str
    factor: float
    offset: float = 0.0
    stems: tuple[str, ...] = ()

    @property
    def inverse(self) -> Conversion:
        """Return the conversion in the opposite direction."""
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
        """Return the name used in mapping files, such as ``HbA1c, % to mmol/mol``."""
        return f"{self.quantity}, {self.first} to {self.second}"

    @property
    def formula(self) -> str:
        """Return the operation on a value in readable form, such as ``× 1.8 + 32``."""
        sign = "+" if self.offset > 0 else "-"
        offset = f" {sign} {abs(self.offset):.4g}" if self.offset else ""
        return f"× {self.factor:.4g}{offset}"

    def matches(self, text: str) -> bool:
        """Return whether a text, such as a column's name, suggests the quantity."""
        words = re.split(r"[\W_]+", _CAMEL_CASE.sub(" ", text).casefold())
        joined = f"_{'_'.join(filter(None, words))}_"
        return any(_matches_stem(joined, stem) for stem in self.stems)


def _matches_stem(joined: str, stem: str) -> bool:
    """Return whether a stem matches words that are joined and enclosed by underscores."""
    if stem.startswith("*"):
        return stem[1:] in joined
    if stem.startswith("^"):
        return joined.startswith(f"_{stem[1:]}_")
    return f"_{stem}" + "_" * (len(stem) <= _SHORT) in joined


_PAIRS: Final = (
    Conversion("HbA1c", "%", "mmol/mol", 10.929, -23.5, ("hba1c", "a1c", "hb_a1c")),
    Conversion("glucose", "mmol/l", "mg/dl", 18.016, 0.0, ("gluc", "gluk", "glyc", "*glukose", "*glucose", "*bloodgluc")),
    Conversion("creatinine", "mg/dl", "µmol/l", 88.42, 0.0, ("crea", "kreat", "*creatinin", "*kreatinin")),
    Conversion("cholesterol", "mmol/l", "mg/dl", 38.67, 0.0, ("chol", "hdl", "ldl", "*cholest", "*tchol", "*lchol")),
    Conversion("triglycerides", "mmol/l", "mg/dl", 88.57, 0.0, ("trig", "tg", "*triglyc", "*plasmatrig")),
    Conversion("bilirubin", "mg/dl", "µmol/l", 17.1, 0.0, ("bili", "*bilirubin")),
    Conversion("urea", "mmol/l", "mg/dl", 6.006, 0.0, ("urea", "surea", "*harnstoff", "*serumurea", "*bloodurea")),
    Conversion("urea nitrogen", "mmol/l", "mg/dl", 2.801, 0.0, ("bun", "urea")),
    Conversion("uric acid", "mg/dl", "µmol/l", 59.48, 0.0, ("uric", "urat", "harns", "*harnsäure")),
    Conversion("calcium", "mmol/l", "mg/dl", 4.008, 0.0, ("calc", "kalz", "ca", "*calcium", "*kalzium")),
    Conversion("phosphate", "mmol/l", "mg/dl", 3.097, 0.0, ("phos", "*phosphat")),
    Conversion("magnesium", "mmol/l", "mg/dl", 2.431, 0.0, ("*magnes", "^mg")),
    Conversion("haemoglobin", "mmol/l", "g/dl", 1.611, 0.0, ("*haemog", "*hemog", "hb")),
    Conversion("C-peptide", "nmol/l", "ng/ml", 3.02, 0.0, ("pept", "cpep", "*peptid")),
    Conversion("insulin", "µU/ml", "pmol/l", 6.0, 0.0, ("*insulin",)),
    Conversion("vitamin D", "ng/ml", "nmol/l", 2.496, 0.0, ("*vitamin_d", "vitd", "vit_d", "25oh")),
    Conversion("temperature", "°C", "°F", 1.8, 32.0, ("temp", "fever", "*bodytemp", "*fieber", "*temperatur")),
    Conversion("weight", "kg", "pounds", 2.2046, 0.0, ("*weight", "*gewicht", "mass", "wt")),
    Conversion("length", "inches", "cm", 2.54, 0.0, ("*height", "*length", "waist", "size")),
    Conversion("length", "feet", "m", 0.3048, 0.0, ("*height", "*length")),
    Conversion("length", "feet", "cm", 30.48, 0.0, ("*height", "*length")),
    Conversion("pressure", "kPa", "mmHg", 7.5006, 0.0, ("press", "*pressure", "pco2", "po2", "sbp", "dbp", "bp")),
    Conversion("time", "years", "months", 12.0, 0.0, ("age", "alter", "duration", "time")),
    Conversion("time", "years", "days", 365.25, 0.0, ("age", "alter", "duration", "time")),
    Conversion("time", "hours", "minutes", 60.0, 0.0, ("duration", "time", "*dauer")),
    Conversion("", "one unit", "its tenth", 10.0),
    Conversion("", "one unit", "its hundredth", 100.0),
    Conversion("", "one unit", "its thousandth", 1e3),
    Conversion("", "one unit", "its millionth", 1e6),
)  # fmt: skip

CONVERSIONS: Final[Sequence[Conversion]] = tuple(
    conversion for pair in _PAIRS for conversion in (pair, pair.inverse)
)
"""All known conversions, in both directions."""


OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {"pounds": ("lb", "lbs")}
"""Other names of units, by the name in :data:`CONVERSIONS`."""


def find_conversion(name: str) -> Conversion | None:
    """Return the conversion with this name, ignoring case, or None if it is unknown."""
    folded = " ".join(name.casefold().split())
    for conversion in CONVERSIONS:
        if conversion.quantity and conversion.name.casefold() == folded:
            return conversion
    return None
