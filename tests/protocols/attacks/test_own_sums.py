"""Two sessions whose terms leave a chosen person out of one of two sums.

Two honest sessions of ``llf`` over rows. The second dictionary declares one value of one
field as no value, and rows without it are dropped: the rows of all others cancel in the
difference of two totals, and one curious member reads the person's row.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.verdicts import ATTACKED, Refused, Verdict, attacked, check

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import (
    completed,
    house_in,
    numbers,
    play,
    sum_of_rows,
)

LAYOUT = Layout.lattice(3)
DROP = [Preparation(missing="drop")]
NEARLY_SAME = Refused(
    Problem.GUARD_REFUSED, "Sums over nearly the same rows were sent before"
)

TAKEN_OUT: dict[tuple[int, str], Verdict] = {
    (1, "nothing"): NEARLY_SAME,
    (3, "sizes"): NEARLY_SAME,
    (3, "centroids"): NEARLY_SAME,
}
"""By number of clusters and what is published: whether the chosen row is read."""


def clinic(rng: np.random.Generator, n: int = 30) -> pd.DataFrame:
    born = np.datetime64("1930-01-01") + rng.choice(25_000, n, replace=False).astype(
        "timedelta64[D]"
    )
    return pd.DataFrame(
        {
            "born": [int(str(day).replace("-", "")) for day in born],
            "height": rng.normal(170, 9, n).round(0),
            "crp": rng.gamma(2, 4, n).round(1),
        }
    )


@pytest.mark.parametrize(("n_clusters", "publish"), TAKEN_OUT)
@pytest.mark.quick(1)
def test_the_row_of_a_chosen_person_is_the_difference_of_two_sums(
    tmp_path: Path, n_clusters: int, publish: str
) -> None:
    rng = np.random.default_rng(0)
    tables = [clinic(rng) for _ in range(3)]
    person = tables[1].iloc[17]
    names = list(person.index)
    born = str(int(person["born"]))
    params = LosslessFederated(n_clusters=n_clusters, publish=publish)

    def measure() -> str | CoterieError:
        with house_in(tmp_path) as house:
            sums = []
            for name, codes in (("all", {}), ("without", {"born": (born,)})):
                dictionary = [numbers(names, 0, 30_000_000, kind="number", codes=codes)]
                outcome = play(
                    house,
                    name,
                    params,
                    LAYOUT,
                    tables,
                    dictionary=dictionary,
                    preparation=DROP,
                )
                if isinstance(outcome, CoterieError):
                    assert sums, "the first session is not the attack"
                    return outcome
                sums.append(sum_of_rows(outcome["r1c1"]))
        read = sums[0] - sums[1]
        return attacked(np.abs(read - person.to_numpy(float)).max() < 1e-6)

    check(measure(), TAKEN_OUT[n_clusters, publish])


_THOROUGH = pytest.mark.thorough(only=True)  # six sessions each


class Series(NamedTuple):
    ids: bool
    same_fields: bool
    limit: float


SERIES = {
    "a quarter, with ids": Series(ids=True, same_fields=False, limit=0.25),
    "none, with ids": Series(ids=True, same_fields=False, limit=0.0),
    "none, no ids, equal fields": Series(ids=False, same_fields=True, limit=0.0),
    "none, no ids, one field more": Series(ids=False, same_fields=False, limit=0.0),
}
"""None of five chosen people is read by one member, whatever the limit."""
QUESTIONS = [f"q{number}" for number in range(5)]
MOST, ROWS = 5, 16


def ward(rng: np.random.Generator, number: int, *, ids: bool) -> pd.DataFrame:
    """Return a questionnaire; ``room`` is filled at the second party."""
    table = pd.DataFrame({name: rng.integers(0, 5, ROWS) for name in QUESTIONS})
    table["room"] = 0
    if number == 1:
        table.loc[: MOST - 1, "room"] = np.arange(1, MOST + 1)
    if ids:
        table.insert(0, "id", [f"{number}-{row}" for row in range(ROWS)])
    return table


USUAL = "none, with ids"


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case == USUAL else _THOROUGH) for case in SERIES],
)
def test_people_are_read_one_after_the_other(tmp_path: Path, case: str) -> None:
    series = SERIES[case]
    rng = np.random.default_rng(1)
    tables = [ward(rng, number, ids=series.ids) for number in range(3)]
    both = [*QUESTIONS, "room"]
    first = both if series.same_fields else QUESTIONS
    names = [(first, {}), *((both, {"room": (str(n + 1),)}) for n in range(MOST))]
    exact = 0
    outcome: str | CoterieError = ATTACKED
    with house_in(tmp_path) as house:
        everybody = None
        for number, (fields, codes) in enumerate(names):
            played = play(
                house,
                f"s{number}",
                LosslessFederated(n_clusters=1, publish="nothing"),
                LAYOUT,
                tables,
                ids="id" if series.ids else None,
                rules={slot: {"sums_limit": series.limit} for slot in LAYOUT.names},
                dictionary=[numbers(fields, codes=codes)],
                preparation=DROP,
            )
            if everybody is None:
                everybody = sum_of_rows(completed(played)["r1c1"])[: len(QUESTIONS)]
                continue
            if isinstance(played, CoterieError):
                outcome = played
                break
            read = everybody - sum_of_rows(played["r1c1"])[: len(QUESTIONS)]
            person = tables[1].loc[number - 1, QUESTIONS].to_numpy(float)
            exact += bool(np.abs(read - person).max() < 1e-6)
    assert exact == 0
    check(outcome, NEARLY_SAME)
