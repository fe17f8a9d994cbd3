"""A data dictionary, which describes the columns of a table to all who hold them.

The format is Table Schema of the Data Package standard
(https://datapackage.org/standard/table-schema/), reduced to what clustering needs, with
additional properties such as ``role``. Columns of ids are not part of it: each party
names its own.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.fields import Field as Declared

from clustering_protocols.common.limits import CONTROLS, LARGEST_NUMBER

MOST_FIELDS: Final = 100_000
MOST_LEVELS: Final = 10_000
MOST_DESCRIBED: Final = 100_000
"""The maximum number of values that a profile has for each cluster."""

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Kind: TypeAlias = Literal["number", "integer", "boolean", "string", "date"]
Role: TypeAlias = Literal["cluster", "describe", "leave-out"]


def normalise_text(text: str) -> str:
    """Return a name or level in NFC, without surrounding whitespace."""
    return unicodedata.normalize("NFC", text).strip()


_Text = Annotated[str, Declared(max_length=200, pattern=rf"^[^{CONTROLS}]*$")]
_Name = Annotated[_Text, AfterValidator(normalise_text), Declared(min_length=1)]
_Value = Annotated[StrictInt | _Name, Declared(description="The value in tables.")]
_Bound: TypeAlias = StrictInt | StrictFloat | StrictStr | None


class SparseModel(BaseModel):
    """An immutable value that is serialised without fields that have their default."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_serializer(mode="wrap")
    def _dump_changed(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = write(self)
        fields = type(self).model_fields
        return {
            name: value
            for name, value in values.items()
            if getattr(self, name) != fields[name].default
        }


class Level(SparseModel):
    """One level of a category, with a label for display."""

    value: _Value
    label: _Text = ""


class Constraints(SparseModel):
    """The valid values of a field; bounds of dates are strings such as 2026-01-31."""

    required: bool = Declared(default=False, description="No value may be missing.")
    minimum: _Bound = None
    maximum: _Bound = None
    enum: tuple[_Value, ...] = Declared(
        default=(),
        max_length=MOST_LEVELS,
        description="Levels, if there are no categories.",
    )


class Field(SparseModel):
    """One column of a table: its name, its type, and its valid values."""

    name: _Name
    title: _Text = Declared(default="", description="For people.")
    description: str = Declared(default="", max_length=2000)
    unit: _Text = Declared(default="", description="Unit of the numbers.")
    role: Role = Declared(
        default="cluster",
        description="cluster: decides which rows are alike. describe: in profiles alone. "
        "leave-out: not read.",
    )
    type: Kind = "number"
    categories: tuple[_Value | Level, ...] = Declared(
        default=(), max_length=MOST_LEVELS, description="Levels, in their order."
    )
    categoriesOrdered: bool = Declared(  # noqa: N815  the name in Table Schema
        default=False, description="Whether the order of the levels matters."
    )
    decimals: int | None = Declared(
        default=None, ge=0, le=15, description="Decimal digits of a number."
    )
    constraints: Constraints = Constraints()
    event: Annotated[str, AfterValidator(normalise_text)] = Declared(
        default="",
        max_length=200,
        description="For a time to an event, the name of the yes-or-no field that says whether "
        "the event occurred; if not, the time is that of the last observation.",
    )
    missingValues: tuple[_Text, ...] | None = Declared(  # noqa: N815  the name in Table Schema
        default=None, description="Missing-value codes; by default the schema's."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.categories and self.constraints.enum:
            raise ValueError("list the levels in categories or constraints.enum")
        is_used = self.role != "leave-out"
        if self.type == "string" and not self.is_category and is_used:
            raise ValueError("a string needs levels: categories, or constraints.enum")
        if self.is_category and self.type not in {"string", "integer"}:
            raise ValueError(f"a {self.type} has no levels")
        if self.categoriesOrdered and not self.is_category:
            raise ValueError("categoriesOrdered is for fields with categories")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError("two levels are the same")
        if set(self.levels) & set(self.missingValues or ()):
            raise ValueError("a level is among the missing values")
        if self.decimals is not None and (self.is_category or self.type != "number"):
            raise ValueError("decimals are for numbers")
        self._check_bounds()
        low, high = self.bounds
        is_time = self.is_measured and self.role == "describe" and high > low == 0.0
        if self.event and not (is_time and math.isfinite(high)):
            raise ValueError(
                "a time to an event is a number to describe, with minimum 0 and a maximum"
            )
        return self

    def _check_bounds(self) -> None:
        bounds = (self.constraints.minimum, self.constraints.maximum)
        if any(bound is not None for bound in bounds) and (
            self.is_category or self.type not in {"number", "integer", "date"}
        ):
            raise ValueError("minimum and maximum are for numbers and dates")
        low, high = self.bounds
        if low > high:
            raise ValueError("the minimum is above the maximum")

    @property
    def is_category(self) -> bool:
        """Return whether the field has levels."""
        return bool(self.categories or self.constraints.enum)

    @property
    def is_measured(self) -> bool:
        """Return whether the field's values are numbers on a scale."""
        return not self.is_category and self.type in {"number", "integer"}

    @property
    def is_ordinal(self) -> bool:
        """Return whether the order of the field's levels matters."""
        return self.is_category and self.categoriesOrdered

    @property
    def value_step(self) -> float | None:
        """Return the step between the field's values, such as 0.1; None if unknown."""
        if self.is_category or self.type == "boolean":
            return None
        if self.type in {"integer", "date"}:
            return 1.0
        return None if self.decimals is None else 10.0**-self.decimals

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the levels as text, in the dictionary's order; empty for a number."""
        return tuple(str(value) for value, _ in self._levels)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels of the levels, in the order of :attr:`levels`."""
        return tuple(label or str(value) for value, label in self._levels)

    @property
    def _levels(self) -> Iterator[tuple[int | str, str]]:
        for level in self.categories or self.constraints.enum:
            if isinstance(level, Level):
                yield level.value, level.label
            else:
                yield level, ""

    @property
    def bounds(self) -> tuple[float, float]:
        """Return minimum and maximum, infinite if unknown; dates as days since 1970."""
        low, high = self.constraints.minimum, self.constraints.maximum
        return self._parse_bound(low, -math.inf), self._parse_bound(high, math.inf)

    @property
    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest number that encode the field's values.

        The extremes of a number or date are its bounds. Levels are encoded by their
        indices from 0, and no and yes by 0 and 1.
        """
        if self.is_category or self.type == "boolean":
            return 0.0, float(max(1, len(self.levels) - 1))
        return self.bounds

    def _parse_bound(self, bound: _Bound, default: float) -> float:
        if bound is None:
            return default
        if isinstance(bound, str) != (self.type == "date"):
            raise ValueError("bounds of dates must be text, and other bounds numbers")
        if isinstance(bound, str):
            return parse_day_number(bound)
        if abs(bound) > LARGEST_NUMBER:
            raise ValueError(
                f"a bound must be between -{LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}"
            )
        return float(bound)


class Schema(SparseModel):
    """The dictionary of a table, which consists of its fields in order."""

    fields: tuple[Field, ...] = Declared(min_length=1, max_length=MOST_FIELDS)
    missingValues: tuple[_Text, ...] = Declared(  # noqa: N815  the name in Table Schema
        default=("",),
        description="Codes of missing values, for fields without their own.",
    )

    @field_validator("fields")
    @classmethod
    def _check_names(cls, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        if len({field.name for field in fields}) < len(fields):
            raise ValueError("two fields have the same name")
        roles = [field.role for field in fields]
        if "cluster" not in roles:
            raise ValueError(
                "no field has the role 'cluster': at least one must be clustered"
            )
        described = [field for field in fields if field.role == "describe"]
        yes_no = {field.name for field in described if field.type == "boolean"}
        if unknown := {field.event for field in fields} - yes_no - {""}:
            raise ValueError(
                f"the event {min(unknown)!r} is not a yes-or-no field to describe"
            )
        if sum(len(field.levels) or 1 for field in described) > MOST_DESCRIBED:
            raise ValueError(
                f"the fields to describe have more than {MOST_DESCRIBED} numbers and levels"
            )
        return fields

    @model_validator(mode="after")
    def _check_codes(self) -> Self:
        for field in self.fields:
            if set(field.levels) & self.missing_codes(field):
                raise ValueError("a level is among the missing values")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(field.name for field in self.fields)

    @property
    def used(self) -> Self:
        """Return the dictionary without the fields whose role is 'leave-out'."""
        return self._with_roles("cluster", "describe")

    @property
    def clustered_part(self) -> Self:
        """Return the dictionary of the clustered fields only."""
        return self._with_roles("cluster")

    @property
    def described_names(self) -> tuple[str, ...]:
        """Return the names of the fields that appear in profiles only."""
        return tuple(field.name for field in self.fields if field.role == "describe")

    def _with_roles(self, *roles: Role) -> Self:
        fields = tuple(field for field in self.fields if field.role in roles)
        if len(fields) == len(self.fields):
            return self
        return self.model_copy(update={"fields": fields})

    def field(self, name: str) -> Field:
        """Return the field of this name; raise :class:`KeyError` if there is none."""
        return {field.name: field for field in self.fields}[name]

    def missing_codes(self, field: Field) -> frozenset[str]:
        """Return the texts that mark a missing value, including the empty text."""
        own = self.missingValues if field.missingValues is None else field.missingValues
        return frozenset({"", *own})


def numeric_schema(
    names: Sequence[str], minimum: ArrayLike, maximum: ArrayLike
) -> Schema:
    """Return a dictionary for numeric columns.

    minimum, maximum: float or array-like of shape (len(names),); finite.
    """
    low, high = (
        np.broadcast_to(end, len(names)).tolist() for end in (minimum, maximum)
    )
    return Schema(
        fields=tuple(
            Field(name=name, constraints=Constraints(minimum=least, maximum=most))
            for name, least, most in zip(names, low, high, strict=True)
        )
    )


def parse_day_number(date: str) -> int:
    """Return the days since 1970-01-01 of an ISO date; raise ValueError otherwise."""
    try:
        if _DATE.fullmatch(date):
            return int(np.datetime64(date, "D").astype(np.int64))
    except ValueError:
        pass  # the form is right, but there is no such day
    raise ValueError("a date has the form 2026-01-31")
