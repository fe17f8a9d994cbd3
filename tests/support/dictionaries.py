"""Dictionaries of tables that hold nothing but numbers."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from clustering_protocols.data import DataSource
from clustering_protocols.schema import Schema, numbers
from clustering_protocols.terms import Layout


def within(
    minimum: ArrayLike,
    maximum: ArrayLike,
    data: Mapping[str, DataSource],
    layout: Layout,
) -> list[Schema]:
    """Return the dictionaries of parties' columns, which lie in these ranges."""
    first = [layout.column_group(c)[0] for c in range(layout.n_column_groups)]
    return [numbers(data[slot].columns, minimum, maximum) for slot in first]
