"""A home recognises rows that it has shown before, although some columns differ.

A home refuses geometry and means of the same rows, and means of nearly the same rows. It
recognises rows by ids, by all their cells, or by one column of many values under the
same name: not a questionnaire of which a second session reads one field more.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.verdicts import Refused

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.contract import Params
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import (
    check_refused,
    completed,
    house_in,
    numbers,
    play,
)

LAYOUT = Layout.lattice(3)
DISTANCES, MEANS = OmniFC(n_clusters=3), LosslessFederated(n_clusters=3)
SHOWN = Refused(
    Problem.GUARD_REFUSED, "an earlier session showed rows up to a rotation"
)
NEARLY = Refused(
    Problem.GUARD_REFUSED, "Sums over nearly the same rows were sent before"
)


class Pair(NamedTuple):
    """Two sessions; the second one publishes means and reads one more field."""

    first: Params
    refusal: Refused
    ids: bool = False
    lab_value: bool = False
    renamed: bool = False
    rows_less: int = 0


PAIRS = {
    "distances, then means; ids": Pair(DISTANCES, SHOWN, ids=True),
    "distances, then means; questionnaire": Pair(DISTANCES, SHOWN),
    "distances, then means; a laboratory value renamed": Pair(
        DISTANCES, SHOWN, lab_value=True, renamed=True
    ),
    "means, then one row less; ids": Pair(MEANS, NEARLY, ids=True, rows_less=1),
    "means, then one row less; questionnaire": Pair(MEANS, NEARLY, rows_less=1),
}


def ward(rng: np.random.Generator, pair: Pair, number: int) -> pd.DataFrame:
    table = pd.DataFrame({f"q{each}": rng.integers(0, 7, 40) for each in range(6)})
    if pair.lab_value:
        table["crp"] = rng.gamma(2, 4, 40).round(3)
    table["extra"] = rng.integers(0, 3, 40)
    if pair.ids:
        table.insert(0, "id", [f"{number}-{row}" for row in range(40)])
    return table


@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.quick(1)
def test_a_home_recognises_rows_that_it_has_shown(tmp_path: Path, case: str) -> None:
    pair = PAIRS[case]
    rng = np.random.default_rng(2)
    tables = [ward(rng, pair, number) for number in range(3)]
    first = [name for name in tables[0].columns if name not in {"id", "extra"}]
    names = {"crp": "crp_mg_l"} if pair.renamed else {}
    later = [table.rename(columns=names) for table in tables]
    later[1] = later[1].iloc[pair.rows_less :]
    second = [names.get(name, name) for name in [*first, "extra"]]
    ids = "id" if pair.ids else None
    with house_in(tmp_path) as house:
        for name, params, fields, rows in (
            ("one", pair.first, first, tables),
            ("two", MEANS, second, later),
        ):
            dictionary = [numbers(fields, 0, kind="number")]
            outcome = play(
                house, name, params, LAYOUT, rows, ids=ids, dictionary=dictionary
            )
            if name == "one":
                completed(outcome)
    check_refused(outcome, pair.refusal)
