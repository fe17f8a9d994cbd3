"""What terms say of the way from fields to columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field as Declared, model_validator

from clustering_protocols.terms.schema import Field, Schema, SparseModel

Missing: TypeAlias = Literal[
    "refuse", "drop", "leave", "mean", "median", "most_frequent"
]
FILLED: Final[frozenset[Missing]] = frozenset({"mean", "median", "most_frequent"})
"""What puts a value in the place of none."""

_MISSING: Final = (
    "What becomes of a row without a value. refuse: its table is refused. drop: it does "
    "not take part. leave: a description counts it. mean, median, most_frequent: the "
    "value of all parties' rows takes its place."
)


class Treatment(SparseModel):
    """What becomes of one field."""

    name: str = Declared(description="The field's, in the dictionary.")
    missing: Missing | None = Declared(
        default=None, description=f"{_MISSING} Default: the preparation's."
    )
    indicator: bool = Declared(
        default=False,
        description="A further column is 1 where the value was missing, else 0.",
    )
    log1p: bool = Declared(
        default=False,
        description="The logarithm of 1 + x stands for x, before missing values are imputed.",
    )
    weight: Annotated[float, Declared(gt=0, le=10)] = Declared(
        default=1.0,
        description="With what the field's columns are multiplied once they are scaled.",
    )

    @property
    def sentence(self) -> str:
        """Return what becomes of the field, for people."""
        gap = {
            "refuse": "",
            "leave": "",
            "drop": "rows without it are left out",
            "most_frequent": "gaps filled with the most frequent level",
        }.get(self.missing or "refuse", f"gaps filled with the {self.missing}")
        said = [
            gap,
            "an indicator of gaps" if self.indicator else "",
            "log1p" if self.log1p else "",
            f"weight {self.weight:g}" if self.weight != 1 else "",
        ]
        return ", ".join(filter(None, said))


class Preparation(SparseModel):
    """How the fields of a column group become columns, in common units.

    Numbers, integers, dates (in days) and ordinals (the place of the level) become one
    column each, which is standardised. A yes or no becomes 0 or 1, a category one column
    per level: 1/√2 where the row has the level, else 0, so that two rows of other levels
    are 1 apart, as those of yes and no are. These are not standardised: an indicator of
    a rare level would outweigh everything.
    """

    missing: Literal["refuse", "drop", "leave"] = Declared(
        default="refuse", description="Of fields that say nothing of their own."
    )
    fields: tuple[Treatment, ...] = Declared(
        default=(), max_length=100_000, description="What is said of single fields."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self._by_name) < len(self.fields):
            raise ValueError("two treatments are of the same field")
        return self

    @cached_property
    def _by_name(self) -> Mapping[str, Treatment]:
        return {treatment.name: treatment for treatment in self.fields}

    def of(self, field: Field) -> Treatment:
        """Return what becomes of a field, with the default filled in."""
        said = self._by_name.get(field.name) or Treatment(name=field.name)
        if said.missing is not None:
            return said
        return said.model_copy(update={"missing": self.missing})

    def check(self, schema: Schema) -> None:
        """Raise :class:`ValueError` where fields are not there, or cannot be treated so."""
        if unknown := sorted(self._by_name.keys() - set(schema.names)):
            raise ValueError(f"the dictionary describes no field {unknown[0]!r}")
        if idle := sorted(self._by_name.keys() & set(schema.described_names)):
            raise ValueError(
                f"{idle[0]!r} has the role 'describe': it takes no part in distances, so "
                "it has no weight and no other treatment"
            )
        for field in schema.clustered_part.fields:
            _check(field, self.of(field))


def build_imputation(schema: Schema, how: Literal["mean", "median"]) -> Preparation:
    """Return the preparation that fills the gaps of clustered fields that may have any.

    Levels are filled with the most frequent one, the place of an ordinal's with the
    median where numbers are.
    """
    fields = []
    for field in schema.clustered_part.fields:
        levels = field.is_category or field.type == "boolean"
        ranks = field.is_ordinal and how == "median"
        missing: Missing = "most_frequent" if levels and not ranks else how
        if not field.constraints.required:
            fields.append(Treatment(name=field.name, missing=missing))
    return Preparation(fields=tuple(fields))


def _check(field: Field, treatment: Treatment) -> None:
    def refuse(what: str) -> ValueError:
        return ValueError(f"{field.name!r}: {what}")

    numeric = not field.is_category and field.type != "boolean"
    low, high = field.bounds
    match treatment.missing:
        case "mean" if not numeric:
            raise refuse("levels have no mean; most_frequent fills them")
        case "median" if not (numeric or field.is_ordinal):
            raise refuse("levels without an order have no median")
        case "median" if numeric and not (-float("inf") < low < high < float("inf")):
            raise refuse("a median needs a minimum and a maximum in the dictionary")
        case "most_frequent" if numeric:
            raise refuse("most_frequent is for levels; numbers have a mean or a median")
    if treatment.indicator and treatment.missing not in FILLED:
        raise refuse("an indicator goes with a gap that is filled")
    if treatment.log1p and not (numeric and field.type != "date" and low > -1):
        raise refuse("log1p is for numbers whose minimum in the dictionary is above -1")
