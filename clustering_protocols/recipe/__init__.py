"""How fields become columns: agreed in the terms, done at home, alike for all.

A dictionary (:mod:`clustering_protocols.schema`) says what the columns of a table mean; a
:class:`Preparation` what becomes of each: what fills its gaps, which numbers stand for its
levels, how much it counts. The :class:`Plan` that follows from both is all that parties
have to know to turn tables into the same columns.
"""

from clustering_protocols.recipe.bounds import Ranges, check_bounded
from clustering_protocols.recipe.plan import Fill, Plan
from clustering_protocols.recipe.preparation import (
    FILLED,
    Missing,
    Preparation,
    Treatment,
    filling,
)
from clustering_protocols.recipe.rows import (
    Observed,
    Prepared,
    check_fields,
    whole_rows,
)

__all__ = [
    "FILLED",
    "Fill",
    "Missing",
    "Observed",
    "Plan",
    "Preparation",
    "Prepared",
    "Ranges",
    "Treatment",
    "check_bounded",
    "check_fields",
    "filling",
    "whole_rows",
]
