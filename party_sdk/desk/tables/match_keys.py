"""Match keys at the desk: how a table's rows look by each, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coterie_pages.models.match_keys import KeyLine

if TYPE_CHECKING:
    from party_sdk.tables.linkage import KeyPreview


def key_lines(found: Sequence[KeyPreview]) -> tuple[KeyLine, ...]:
    """Return how rows look by each key, as a page says it."""
    return tuple(
        KeyLine(
            key=each.key,
            figures=each.sentence,
            first=each.first_values,
            serves=each.serves,
        )
        for each in found
    )
