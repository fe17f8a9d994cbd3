"""What people read of a layout that cannot be: places are counted from 1."""

from __future__ import annotations

import pytest

from clustering_protocols.terms.terms import Layout, Slot


@pytest.mark.parametrize(("rows", "none"), [((0, 2), 2), ((1, 2), 1), ((0, 1, 5), 3)])
def test_the_group_that_is_missing_is_counted_from_one(
    rows: tuple[int, ...], none: int
) -> None:
    slots = tuple(Slot(name=f"s{row}", row=row, column=0) for row in rows)
    with pytest.raises(ValueError, match=f"row groups .* none is {none} "):
        Layout(slots=slots)
