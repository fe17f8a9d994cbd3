"""How fields become columns: agreed in the terms, done at home, alike for all.

A dictionary (:mod:`clustering_protocols.terms.schema`) says what the columns of a table
mean; a :class:`Preparation` what becomes of each: what fills its gaps, which numbers
stand for its levels, how much it counts. The :class:`ColumnPlan` that follows from both is
all that parties have to know to turn tables into the same columns.
"""

from clustering_protocols.terms.preparation.plan import (
    ColumnPlan,
    Fill,
    ObservedRows,
    PreparedRows,
    Ranges,
    check_bounded,
    check_fields,
    clustered_columns,
    plans_of,
    whole_rows,
)
from clustering_protocols.terms.preparation.preparation import (
    FILLED,
    Missing,
    Preparation,
    Treatment,
    build_imputation,
)

__all__ = [
    "FILLED",
    "ColumnPlan",
    "Fill",
    "Missing",
    "ObservedRows",
    "Preparation",
    "PreparedRows",
    "Ranges",
    "Treatment",
    "build_imputation",
    "check_bounded",
    "check_fields",
    "clustered_columns",
    "plans_of",
    "whole_rows",
]
