"""Two sessions whose terms leave a chosen person out of one of two sums.

Two honest sessions of ``llf`` over rows. The second dictionary declares one value of one
field as no value, and rows without it are dropped: without a refusal the rows of all
others would cancel in the difference of two totals, and one curious member would read the
person's row.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.verdicts import Refused

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import (
    check_refused,
    completed,
    house_in,
    numbers,
    play,
)

LAYOUT = Layout.lattice(3)
NEARLY_SAME = Refused(
    Problem.GUARD_REFUSED, "Sums over nearly the same rows were sent before"
)
QUESTIONS = [f"q{number}" for number in range(5)]
ONE_SUM = {"n_clusters": 1, "publish": "nothing"}


class Case(NamedTuple):
    """What the terms say, how rows are named, and what each party allows."""

    terms: Mapping[str, Any] = ONE_SUM
    ids: bool = False
    first: list[str] = QUESTIONS
    limit: float | None = None


CASES = {
    "no sum allowed, with ids": Case(ids=True, limit=0.0),
    "a quarter of the rows, with ids": Case(ids=True, limit=0.25),
    "no sum allowed, equal fields": Case(first=[*QUESTIONS, "room"], limit=0.0),
    "no sum allowed, one field more": Case(limit=0.0),
    "by default": Case(),
    "by default, sizes": Case({"n_clusters": 3, "publish": "sizes"}),
    "by default, centroids": Case({"n_clusters": 3, "publish": "centroids"}),
}


def ward(rng: np.random.Generator, number: int, *, ids: bool) -> pd.DataFrame:
    """Return a questionnaire; ``room`` is filled for one person of the second party."""
    table = pd.DataFrame({name: rng.integers(0, 5, 30) for name in QUESTIONS})
    table["room"] = 0
    if number == 1:
        table.loc[17, "room"] = 1
    if ids:
        table.insert(0, "id", [f"{number}-{row}" for row in range(30)])
    return table


@pytest.mark.parametrize("name", CASES)
@pytest.mark.quick(1)
def test_no_second_sum_leaves_one_person_out(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    rng = np.random.default_rng(1)
    tables = [ward(rng, number, ids=case.ids) for number in range(3)]
    rules = {} if case.limit is None else {"sums_limit": case.limit}
    with house_in(tmp_path) as house:
        first, second = (
            play(
                house,
                session,
                LosslessFederated(**case.terms),
                LAYOUT,
                tables,
                ids="id" if case.ids else None,
                rules=dict.fromkeys(LAYOUT.names, rules),
                dictionary=[numbers(fields, codes=codes)],
                preparation=[Preparation(missing="drop")],
            )
            for session, fields, codes in (
                ("all", case.first, {}),
                ("without", [*QUESTIONS, "room"], {"room": ("1",)}),
            )
        )
    completed(first)
    check_refused(second, NEARLY_SAME)
