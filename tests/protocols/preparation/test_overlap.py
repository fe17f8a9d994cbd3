"""What is told of an overlap before it is accepted."""

from __future__ import annotations

from itertools import pairwise

import pytest

from clustering_protocols.shared_stages.alignment.common_rows import told_share


@pytest.mark.parametrize(
    ("n_common", "n_smallest", "told"),
    [
        (0, 810, "0 to 5 %"),
        (229, 810, "25 to 30 %"),
        (679, 810, "80 to 85 %"),
        (809, 810, "95 to 100 %"),
        (810, 810, "95 to 100 %"),
    ],
)
def test_a_share_is_told_in_steps_of_a_twentieth(
    n_common: int, n_smallest: int, told: str
) -> None:
    assert told_share(n_common, n_smallest, 10) == f"{told} of the smallest table"


def test_one_person_more_or_less_is_mostly_not_seen() -> None:
    told = [told_share(n, 1000, 10) for n in range(1001)]
    changes = sum(a != b for a, b in pairwise(told))
    assert changes == 19


def test_of_a_table_of_few_ids_no_share_is_told() -> None:
    told = {told_share(n, 9, 10) for n in range(10)}
    assert told == {"a part that is not told of a table of fewer than 10 ids"}
