"""Rules by which the fields of a table become the columns that are clustered.

A dictionary (:mod:`clustering_protocols.terms.schema`) describes the columns of a
table. A :class:`Preparation` defines how missing values of each field are imputed, how
its levels are encoded, and its weight. Together they determine a :class:`ColumnPlan`.
Parties agree on the plan in the terms, and each applies it to its own table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field as attribute
from functools import cached_property
from typing import Annotated, Final, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from pydantic import Field as Declared, model_validator

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.numerics.data_source import DataSource, keep_columns
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.captions import HARMONISE
from clustering_protocols.terms.schema import Constraints, Field, Schema, SparseModel

Missing: TypeAlias = Literal[
    "refuse", "drop", "leave", "mean", "median", "most_frequent"
]
FILLED: Final[frozenset[Missing]] = frozenset({"mean", "median", "most_frequent"})
"""The rules that replace missing values by a statistic."""

_MISSING_HELP: Final = (
    "Rule for rows without a value. refuse: the table is refused. drop: the row does not "
    "take part. leave: a description counts the gap. mean, median, most_frequent: this "
    "statistic of all parties' rows is imputed."
)


class Treatment(SparseModel):
    """The rules that apply to one field."""

    name: str = Declared(description="Name of the field in the dictionary.")
    missing: Missing | None = Declared(
        default=None, description=f"{_MISSING_HELP} Default: the preparation's."
    )
    indicator: bool = Declared(
        default=False,
        description="Add a column that is 1 where the value was missing, and 0 elsewhere.",
    )
    log1p: bool = Declared(
        default=False,
        description="Replace x by the logarithm of 1 + x, before missing values are imputed.",
    )
    weight: Annotated[float, Declared(gt=0, le=10)] = Declared(
        default=1.0,
        description="Factor of the field's columns after scaling.",
    )

    @property
    def sentence(self) -> str:
        """Return a description of the treatment in words."""
        gaps = {
            "refuse": "",
            "leave": "",
            "drop": "rows without a value are left out",
            "most_frequent": "gaps filled with the most frequent level",
        }.get(self.missing or "refuse", f"gaps filled with the {self.missing}")
        parts = [
            gaps,
            "an indicator of gaps" if self.indicator else "",
            "log1p" if self.log1p else "",
            f"weight {self.weight:g}" if self.weight != 1 else "",
        ]
        return ", ".join(filter(None, parts))


class Preparation(SparseModel):
    """The rules by which the fields of a column group become columns in common units.

    Numbers, integers, dates (in days) and ordinals (the number of the level) become one
    column each, which is standardised. A boolean becomes 0 or 1. A category becomes one
    column per level: 1/√2 where the row has the level, otherwise 0, so that rows with
    different levels are 1 apart, like rows with yes and no. Levels are not
    standardised, because an indicator of a rare level would outweigh everything else.
    """

    missing: Literal["refuse", "drop", "leave"] = Declared(
        default="refuse", description="Rule for fields without their own rule."
    )
    fields: tuple[Treatment, ...] = Declared(
        default=(), max_length=100_000, description="Rules for single fields."
    )
    harmonise: Literal["combat"] | None = Declared(
        default=None,
        description="Remove site effects from numbers: shifts and scales of parties.",
    )
    covariates: Annotated[tuple[str, ...], HARMONISE] = Declared(
        default=(),
        max_length=100,
        description="For harmonise: fields whose effects are preserved, such as age and sex.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self._by_name) < len(self.fields):
            raise ValueError("two treatments name the same field")
        if self.covariates and self.harmonise is None:
            raise ValueError("covariates need harmonise 'combat'")
        return self

    @cached_property
    def _by_name(self) -> Mapping[str, Treatment]:
        return {treatment.name: treatment for treatment in self.fields}

    def of(self, field: Field) -> Treatment:
        """Return the treatment of a field, with the default rule for gaps filled in."""
        treatment = self._by_name.get(field.name) or Treatment(name=field.name)
        if treatment.missing is not None:
            return treatment
        return treatment.model_copy(update={"missing": self.missing})

    def check(self, schema: Schema) -> None:
        """Raise ValueError for unknown fields or treatments that do not fit a field."""
        if unknown := sorted(self._by_name.keys() - set(schema.names)):
            raise ValueError(f"the dictionary describes no field {unknown[0]!r}")
        if idle := sorted(self._by_name.keys() & set(schema.described_names)):
            raise ValueError(
                f"{idle[0]!r} has the role 'describe': it plays no part in distances, so "
                "it has no weight and no other treatment"
            )
        for field in schema.clustered_part.fields:
            _check_treatment(field, self.of(field))
        if self.harmonise is not None:
            self._check_harmonised(schema)

    def _check_harmonised(self, schema: Schema) -> None:
        if len(set(self.covariates)) < len(self.covariates):
            raise ValueError("two covariates are the same field")
        if unknown := sorted(set(self.covariates) - set(schema.names)):
            raise ValueError(f"the dictionary has no covariate {unknown[0]!r}")
        clustered = schema.clustered_part.fields
        if any(self.of(field).missing == "leave" for field in clustered):
            raise ValueError("a description has no site effects to remove")
        harmonised = [field for field in clustered if self.removes_site_effects(field)]
        if len(harmonised) < _FEWEST_HARMONISED:
            raise ValueError(
                f"site effects need {_FEWEST_HARMONISED} or more clustered numbers that "
                "are not covariates"
            )
        for field in (*harmonised, *map(schema.field, self.covariates)):
            low, high = field.extremes
            if not math.isfinite(high - low):
                raise ValueError(
                    "site effects need a minimum and a maximum in the dictionary: "
                    f"{field.name!r} lacks one"
                )

    def removes_site_effects(self, field: Field) -> bool:
        """Return whether site effects are removed from a clustered field."""
        is_covariate = field.name in self.covariates
        return self.harmonise is not None and field.is_measured and not is_covariate


_FEWEST_HARMONISED: Final = 2
"""The minimum number of columns for ComBat, which compares site effects across them."""


def build_imputation(
    schema: Schema, statistic: Literal["mean", "median"]
) -> Preparation:
    """Return a preparation that imputes the missing values of all clustered fields.

    Missing numbers become the statistic. Missing levels become the most frequent level;
    those of ordinals become the median if that is the statistic.
    """
    fields = []
    for field in schema.clustered_part.fields:
        has_levels = field.is_category or field.type == "boolean"
        by_rank = field.is_ordinal and statistic == "median"
        missing: Missing = "most_frequent" if has_levels and not by_rank else statistic
        if not field.constraints.required:
            fields.append(Treatment(name=field.name, missing=missing))
    return Preparation(fields=tuple(fields))


def _check_treatment(field: Field, treatment: Treatment) -> None:
    numeric = not field.is_category and field.type != "boolean"
    low, high = field.bounds
    problem = ""
    match treatment.missing:
        case "mean" if not numeric:
            problem = "levels have no mean; use most_frequent"
        case "median" if not (numeric or field.is_ordinal):
            problem = "levels without an order have no median"
        case "median" if numeric and not (low < high and math.isfinite(high - low)):
            problem = "a median needs a minimum and a maximum in the dictionary"
        case "most_frequent" if numeric:
            problem = "most_frequent is for levels; numbers have a mean or a median"
    if treatment.indicator and treatment.missing not in FILLED:
        problem = "an indicator needs a rule that imputes missing values"
    if treatment.log1p and not (numeric and field.type != "date" and low > -1):
        problem = "log1p is for numbers whose minimum in the dictionary is above -1"
    if problem:
        raise ValueError(f"{field.name!r}: {problem}")


class Ranges(NamedTuple):
    """The smallest and the largest value of each column; infinite if unknown.

    low, high: float64 (m,).
    """

    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, schema: Schema) -> Ranges:
        """Return the ranges of fields that are clustered without a preparation."""
        low, high = np.array([field.extremes for field in schema.fields]).T
        return cls(low, high)

    @classmethod
    def unbounded(cls, width: int) -> Ranges:
        """Return infinite ranges for ``width`` columns."""
        return cls(np.full(width, -np.inf), np.full(width, np.inf))

    def check(self, data: DataSource) -> None:
        """Raise InvalidData if a value is out of range; the message names only columns."""
        outside = np.zeros(len(data.columns), dtype=bool)
        for batch in data.batches():
            outside |= ((batch < self.low) | (batch > self.high)).any(axis=0)
        if outside.any():
            names = ", ".join(np.array(data.columns)[outside])
            raise InvalidData(f"Values outside the dictionary's range, in {names}.")


def check_finite_ranges(
    dictionary: Sequence[Schema], subject: str, *, wide: bool = False
) -> None:
    """Raise :class:`InvalidParameters` for fields without a finite range.

    dictionary: the schema of each column group; empty if the terms have none.
    subject: the method or option that needs the ranges, for the error message.
    wide: whether a range that consists of a single value is refused too.
    """
    if not dictionary:
        raise InvalidParameters(
            f"{subject} needs a data dictionary (--schema) with a minimum and a maximum of "
            "every field."
        )
    for field in (field for schema in dictionary for field in schema.fields):
        low, high = field.extremes
        if not math.isfinite(high - low):
            raise InvalidParameters(
                f"{subject} needs a minimum and a maximum of every field: the data "
                f"dictionary (--schema) lacks one for {field.name!r}, or its site "
                "effects are removed and no bounds remain."
            )
        if wide and low == high:
            raise InvalidParameters(
                f"{subject} needs ranges of more than one value: leave {field.name!r} out."
            )


_INDICATOR: Final = 0.5**0.5
"""The value of a level's indicator, with which rows of different levels are 1 apart."""

MOST_COLUMNS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Fill:
    """The pooled statistic that replaces the missing values of one field.

    place: the index of the field among the clustered ones.
    how: 'mean', 'median' or 'most_frequent'.
    low, high: the range of the values, after the logarithm if it is taken; infinite if
        unknown.
    whole: whether the values are integers.
    ranking: indices of the levels, in the order that breaks ties of most_frequent.
    """

    name: str
    place: int
    how: Missing
    low: float
    high: float
    whole: bool
    ranking: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _FieldColumns:
    """One field and its columns, the first of which has the index ``begin``."""

    field: Field
    treatment: Treatment
    begin: int

    @property
    def n_levels(self) -> int:
        return len(self.field.levels) if _is_nominal(self.field) else 0

    @property
    def names(self) -> list[str]:
        name = self.field.name
        own = (
            [f"{name}={level}" for level in self.field.levels] if self.n_levels else []
        )
        gap = [f"{name} missing"] if self.treatment.indicator else []
        return (own or [name]) + gap

    @property
    def observed_range(self) -> tuple[float, float]:
        low, high = self.field.extremes
        if self.treatment.log1p:
            return float(np.log1p(low)), float(np.log1p(high))
        return low, high

    @property
    def ranges(self) -> list[tuple[float, float]]:
        weight = self.treatment.weight
        gap = [(0.0, weight)] * self.treatment.indicator
        if self.n_levels:
            return [(0.0, weight * _INDICATOR)] * self.n_levels + gap
        if self.unscaled[0]:
            return [(0.0, weight), *gap]
        return [self.observed_range, *gap]

    @property
    def unscaled(self) -> list[bool]:
        """Return which of the columns are in common units without scaling."""
        own = self.n_levels or 1
        ready = bool(self.n_levels) or self.field.type == "boolean"
        return [ready] * own + [True] * self.treatment.indicator


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """A plan that turns the fields of one column group into columns.

    schema: the dictionary of the clustered fields.
    described: further fields to read, namely covariates that are not clustered.

    Raises ValueError if the preparation does not fit the fields, or if two columns
        would have the same name.
    """

    schema: Schema = attribute(repr=False)
    preparation: Preparation = attribute(repr=False)
    described: tuple[Field, ...] = attribute(default=(), repr=False)

    @classmethod
    def of(cls, dictionary: Schema, preparation: Preparation) -> Self:
        """Return the plan for a dictionary; not all of its fields have to be clustered."""
        described = [
            dictionary.field(name)
            for name in preparation.covariates
            if name in dictionary.described_names
        ]
        return cls(dictionary.clustered_part, preparation, tuple(described))

    def __post_init__(self) -> None:
        fields = (*self.schema.fields, *self.described)
        self.preparation.check(self.schema.model_copy(update={"fields": fields}))
        if len(self.columns) > MOST_COLUMNS:
            raise ValueError(f"the fields become more than {MOST_COLUMNS} columns")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("two of the columns that fields become have the same name")

    @cached_property
    def _pieces(self) -> Sequence[_FieldColumns]:
        pieces, begin = list[_FieldColumns](), 0
        for field in self.schema.fields:
            pieces.append(_FieldColumns(field, self.preparation.of(field), begin))
            begin += len(pieces[-1].names)
        return pieces

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields to read; the clustered fields come first."""
        return (*self.schema.names, *(field.name for field in self.described))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the clustered columns."""
        return tuple(name for piece in self._pieces for name in piece.names)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Return the name of the field from which each column is computed."""
        return tuple(p.field.name for p in self._pieces for _ in p.names)

    @cached_property
    def weights(self) -> FloatArray:
        """Return the factor (m,) that multiplies each column after scaling."""
        return np.array([p.treatment.weight for p in self._pieces for _ in p.names])

    @cached_property
    def unscaled(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which columns (m,) are in common units already, and so not scaled."""
        return np.array([ready for piece in self._pieces for ready in piece.unscaled])

    @cached_property
    def levels(self) -> tuple[range, ...]:
        """Return the column indices of each set of indicators; some sets have only one."""
        level_columns = []
        for piece in self._pieces:
            end = piece.begin + (piece.n_levels or 1)
            if piece.unscaled[0]:
                level_columns.append(range(piece.begin, end))
            if piece.treatment.indicator:
                level_columns.append(range(end, end + 1))
        return tuple(level_columns)

    @cached_property
    def bounds(self) -> Ranges:
        """Return the ranges of the columns; infinite where site effects are removed."""
        is_unknown = self.harmonised[:, None]
        low, high = np.where(is_unknown, (-np.inf, np.inf), self._ranges).T
        return Ranges(low, high)

    @cached_property
    def _ranges(self) -> FloatArray:
        return np.array([ends for piece in self._pieces for ends in piece.ranges])

    @cached_property
    def harmonised(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return from which columns (m,) site effects are removed."""
        return np.array(
            [
                self.preparation.removes_site_effects(piece.field) and column == 0
                for piece in self._pieces
                for column in range(len(piece.names))
            ]
        )

    @property
    def declared_schema(self) -> Schema:
        """Return the clustered fields, without ranges where site effects are removed."""
        if not self.harmonised.any():
            return self.schema
        fields = tuple(
            field.model_copy(update={"constraints": Constraints()})
            if self.preparation.removes_site_effects(field)
            else field
            for field in self.schema.fields
        )
        return self.schema.model_copy(update={"fields": fields})

    @property
    def covariate_fields(self) -> Sequence[Field]:
        """Return the covariates, in the order of their columns."""
        return [field for _, field in self._covariates]

    def design_names(self, field: Field) -> list[str]:
        """Return the names of a covariate's columns in the design matrix."""
        if not _is_nominal(field):
            return [field.name]
        return [f"{field.name}={level}" for level in field.levels[1:]]

    @cached_property
    def covariates(self) -> tuple[str, ...]:
        """Return the names of all covariates' columns; the first level of each has none."""
        return tuple(
            name for _, field in self._covariates for name in self.design_names(field)
        )

    @cached_property
    def _covariates(self) -> list[tuple[int, Field]]:
        fields = (*self.schema.fields, *self.described)
        return [
            (number, fields[number])
            for number in map(self.fields.index, self.preparation.covariates)
        ]

    @cached_property
    def harmonised_ranges(self) -> Ranges:
        """Return the ranges of the harmonised columns (f), then of the covariates' (q)."""
        bounds = []
        for number, field in self._covariates:
            ends = field.extremes
            if number < len(self._pieces):
                ends = self._pieces[number].observed_range
            bounds += [(0.0, 1.0) if _is_nominal(field) else ends] * len(
                self.design_names(field)
            )
        low, high = np.array([*self._ranges[self.harmonised].tolist(), *bounds]).T
        return Ranges(low, high)

    def units(self, spread: FloatArray) -> FloatArray:
        """Return the divisor of each column (m,), given its standard deviation.

        The divisor is 1 for a column in common units, and otherwise the standard
        deviation divided by the weight.
        """
        return np.where(self.unscaled, 1.0, spread / self.weights)

    @cached_property
    def fills(self) -> tuple[Fill, ...]:
        """Return the statistics that replace missing values; parties pool them first."""
        return tuple(
            Fill(
                piece.field.name,
                number,
                piece.treatment.missing,
                *piece.observed_range,
                whole=piece.field.type != "number" and not piece.treatment.log1p,
                ranking=_rank_levels(piece.field),
            )
            for number, piece in enumerate(self._pieces)
            if piece.treatment.missing in FILLED
        )

    def fields_by_missing(self, missing: Missing) -> IntArray:
        """Return the indices of the ``fields`` with this rule for missing values."""
        rules = [piece.treatment.missing for piece in self._pieces]
        rules += [self.preparation.missing] * len(self.described)
        return np.flatnonzero([rule == missing for rule in rules]).astype(np.int64)

    def take_logarithms(self, rows: FloatArray) -> FloatArray:
        """Return rows (n, fields) with logarithms taken where the plan says so."""
        if not self._logarithms:
            return rows
        values = np.array(rows)
        for number in self._logarithms:
            np.log1p(values[:, number], out=values[:, number])
        return values

    @cached_property
    def _logarithms(self) -> list[int]:
        return [i for i, piece in enumerate(self._pieces) if piece.treatment.log1p]

    def prepare(self, observed: FloatArray, filled: FloatArray) -> FloatArray:
        """Return float64 (n, m + q): the clustered columns, then the covariates' columns.

        observed: float64 (n, fields); NaN for a missing value.
        filled: float64 (len(fills),); the replacement values, one for each of
            ``fills``.
        """
        fillers = np.full(observed.shape[1], np.nan)
        fillers[[fill.place for fill in self.fills]] = filled
        gaps = np.isnan(observed)
        values = np.where(gaps, fillers, observed)
        one_each = len(self.columns) == len(self._pieces) and not self._covariates
        if one_each and not self.unscaled.any():
            return values
        columns, design = np.zeros((len(observed), len(self.columns))), []
        for number, piece in enumerate(self._pieces):
            _write_columns(piece, values[:, number], gaps[:, number], columns)
        for number, field in self._covariates:
            column = values[:, [number]]
            is_level = column == np.arange(1, len(field.levels))
            design.append(is_level.astype(float) if _is_nominal(field) else column)
        return np.hstack([columns, *design])


def _is_nominal(field: Field) -> bool:
    return field.is_category and not field.is_ordinal


def _write_columns(
    piece: _FieldColumns,
    values: FloatArray,
    gaps: np.ndarray[tuple[int], np.dtype[np.bool_]],
    columns: FloatArray,
) -> None:
    weight, begin = piece.treatment.weight, piece.begin
    if piece.n_levels:
        rows = np.arange(len(values))
        columns[rows, begin + values.astype(np.int64)] = weight * _INDICATOR
    else:
        ready = piece.unscaled[0]
        columns[:, begin] = weight * values if ready else values
    if piece.treatment.indicator:
        columns[:, begin + (piece.n_levels or 1)] = weight * gaps


def _rank_levels(field: Field) -> tuple[int, ...]:
    """Return the indices of a field's levels, in the order that breaks ties.

    Ordinal levels keep their order; others are sorted by value. The first of equally
    frequent levels is imputed, as in scikit-learn.
    """
    if field.type == "boolean":
        return (0, 1)
    numbers = range(len(field.levels))
    if field.is_ordinal:
        return tuple(numbers)
    value = int if field.type == "integer" else str
    return tuple(sorted(numbers, key=lambda number: value(field.levels[number])))


def build_column_plans(
    n_groups: int,
    dictionary: Sequence[Schema] | None,
    preparation: Sequence[Preparation] | None,
) -> tuple[ColumnPlan, ...]:
    """Return the plan of each column group, or () if there is no preparation.

    Raises ValueError if there are not ``n_groups`` dictionaries or preparations, if a
        preparation has no dictionary that it fits, or if categories have no
        preparation.
    """
    if dictionary is not None and len(dictionary) != n_groups:
        raise ValueError(f"{n_groups} column groups need {n_groups} dictionaries")
    if preparation is None:
        for schema in dictionary or ():
            for field in schema.clustered_part.fields:
                if field.is_category:
                    raise ValueError(f"{field.name!r} has levels: add a preparation")
        return ()
    if dictionary is None:
        raise ValueError("a preparation needs a dictionary of the fields")
    if len(preparation) != n_groups:
        raise ValueError(f"{n_groups} column groups need {n_groups} preparations")
    for schema, prepared in zip(dictionary, preparation, strict=True):
        prepared.check(schema)
    return tuple(map(ColumnPlan.of, dictionary, preparation))


def check_field_order(source: DataSource, names: Sequence[str]) -> None:
    """Raise :class:`InvalidData` unless the columns are the fields in their order."""
    if tuple(source.columns) != tuple(names):
        raise InvalidData(
            "The terms describe different columns, or a different order: "
            f"{', '.join(names[:20])}."
        )


def select_placing_fields(schema: Schema, preparation: Preparation | None) -> Schema:
    """Return the fields that assign a row to a cluster: clustered ones, then covariates."""
    if preparation is None or not schema.described_names:
        return schema.clustered_part
    names = ColumnPlan.of(schema, preparation).fields
    return schema.model_copy(update={"fields": tuple(map(schema.field, names))})


def select_clustered_columns(
    source: DataSource, schema: Schema | None, plan: ColumnPlan | None
) -> DataSource:
    """Return a party's rows without the columns that are only described.

    The clustered fields come first, followed by the covariates of a plan.

    source: a table with all fields of the dictionary, or with only the columns to
        return.
    """
    if schema is None or not schema.described_names:
        return source
    names = schema.clustered_part.names if plan is None else plan.fields
    if tuple(source.columns) == names:
        return source
    check_field_order(source, schema.names)
    numbers = [schema.names.index(name) for name in names]
    return keep_columns(source, np.array(numbers, dtype=np.int64))


def find_usable_rows(source: DataSource, plan: ColumnPlan) -> IntArray | None:
    """Return the indices of the rows that can take part, or None if all can.

    source: a table whose columns are the fields.

    Raises InvalidData if a field has gaps that are refused, or if every row has a gap
        that excludes it.
    """
    dropping = plan.fields_by_missing("drop")
    refusing = plan.fields_by_missing("refuse")
    if not (len(dropping) or len(refusing)):
        return None
    row_numbers, begin = [], 0
    for batch in source.batches():
        gaps = np.isnan(batch)
        if lacking := [i for i in refusing if gaps[:, i].any()]:
            names = ", ".join(plan.fields[number] for number in lacking[:10])
            raise InvalidData(f"Values are missing in {names}.")
        row_numbers.append(begin + np.flatnonzero(~gaps[:, dropping].any(axis=1)))
        begin += len(batch)
    rows = np.concatenate(row_numbers)
    if not len(rows):
        raise InvalidData("No row has all the values that it needs to take part.")
    return None if len(rows) == source.n_rows else rows
