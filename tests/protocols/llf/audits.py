"""Parties that answer whatever follows of their rows, for tests of other things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clustering_protocols.terms.session_risks import ONE_FIELD, SUMS_LIMIT
from clustering_protocols.terms.terms import Layout

UNAUDITED: Final = {SUMS_LIMIT: 1.0}
"""The choice of a party that lets all of its rows follow from sums."""

FREELY: Final = {**UNAUDITED, ONE_FIELD: True}
"""The same, of one that lets a single field dominate too."""


def unaudited(layout: Layout) -> Mapping[str, Mapping[str, Any]]:
    """Return the choices of parties of which none audits its answers."""
    return dict.fromkeys(layout.names, UNAUDITED)
