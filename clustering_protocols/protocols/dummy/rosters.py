"""What follows from roster and layout alone."""

from __future__ import annotations

from .params import DummySession


def rows_per_group(session: DummySession) -> list[int]:
    """Return the number of rows of each row group."""
    layout = session.layout
    first = [layout.row_group(row)[0] for row in range(layout.n_row_groups)]
    return [session.n_rows(slot) for slot in first]
