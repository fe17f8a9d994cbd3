"""How the rows of one's own table look by match keys, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from party_sdk.tables.report import KeyPreview

if TYPE_CHECKING:
    from clustering_protocols.shared_stages.alignment.match_keys.key_values import (
        KeyValues,
    )

_N_FIRST: Final = 3


def preview_keys(found: Sequence[KeyValues]) -> tuple[KeyPreview, ...]:
    """Return how rows look by each key."""
    return tuple(
        KeyPreview(
            key=each.key,
            n_rows=len(each.values),
            n_filled=each.n_filled,
            n_unique=each.n_unique,
            first=tuple(each.show(row) for row in range(len(each.values))[:_N_FIRST]),
        )
        for each in found
    )
