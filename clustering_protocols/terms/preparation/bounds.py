"""Between which values columns lie, as the dictionary says it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.schema import Field, Schema


class Ranges(NamedTuple):
    """Least and greatest value of each column, infinite where none is said.

    low, high: float64 (m,).
    """

    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, schema: Schema) -> Ranges:
        """Return the ranges of fields that are clustered as they are."""
        low, high = np.array([field.extremes for field in schema.fields]).T
        return cls(low, high)

    @classmethod
    def unknown(cls, width: int) -> Ranges:
        """Return the ranges of columns of which nothing is said."""
        return cls(np.full(width, -np.inf), np.full(width, np.inf))

    def check(self, data: DataSource) -> None:
        """Refuse rows outside, before anything of them is sent.

        Raises InvalidData: it names the columns, and no value.
        """
        outside = np.zeros(len(data.columns), dtype=bool)
        for batch in data.batches():
            outside |= ((batch < self.low) | (batch > self.high)).any(axis=0)
        if outside.any():
            names = ", ".join(np.array(data.columns)[outside])
            raise InvalidData(f"Values outside the dictionary's range, in {names}.")


def check_bounded(
    dictionary: Sequence[Schema], what: str, *, wide: bool = False
) -> None:
    """Refuse fields without a finite minimum and maximum.

    dictionary: of each column group; none where terms have none.
    what: what needs them, for the operator.
    wide: whether a range of one value is none either.

    Raises InvalidParameters.
    """
    if not dictionary:
        raise InvalidParameters(
            f"{what} needs a data dictionary (--schema) with a minimum and a maximum of "
            "every field."
        )
    for field in (field for schema in dictionary for field in schema.fields):
        if not _is_bounded(field):
            raise InvalidParameters(
                f"{what} needs a minimum and a maximum of every field: the data "
                f"dictionary (--schema) gives {field.name!r} none, or one alone."
            )
        if wide and field.extremes[0] == field.extremes[1]:
            raise InvalidParameters(
                f"{what} needs ranges of more than one value: leave {field.name!r} out."
            )


def _is_bounded(field: Field) -> bool:
    low, high = field.extremes
    return math.isfinite(high - low)  # of finite ends too: units are made of it
