"""``repeated_people: left-out`` tells who is a patient elsewhere, and that person's row.

The cluster sizes that everybody reads add up to the rows that take part. The first party
puts one known name and birth date into its table: one row less takes part if the person
is a patient elsewhere, and the totals differ by that patient's row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from support.verdicts import ATTACKED, RIGHT, Verdict, attacked, check

from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.terms import Layout
from tests.attacks.honest_sessions import (
    completed,
    house_in,
    numbers,
    play,
    sum_of_rows,
)

VERDICTS: dict[str, Verdict] = {"a patient elsewhere": ATTACKED, "nobody": RIGHT}
"""By the name in the first table: whether its people learn of the person, and the row."""
NAMES = ["surname", "born"]
VALUES = ["age", "crp", "hiv"]


def people(rng: np.random.Generator, n: int, tag: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "surname": [f"{tag}{row:03}x" for row in range(n)],
            "born": [
                f"19{30 + row % 60}-0{1 + row % 9}-1{row % 10}" for row in range(n)
            ],
            "age": rng.integers(20, 90, n),
            "crp": rng.integers(0, 300, n),
            "hiv": rng.integers(0, 2, n),
        }
    )


def test_one_name_asks_whether_a_person_is_a_patient(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    own, *others = (people(rng, n, tag) for n, tag in ((20, "A"), (30, "B"), (25, "C")))
    person = others[0].loc[11]
    params = LosslessFederated(
        n_clusters=2,
        publish="sizes",
        alignment={
            "method": "ecdh",
            "match_keys": ["surname + born"],
            "repeated_people": "left-out",
        },
    )
    first = {"as it is": own}
    for case, surname in zip(VERDICTS, (person["surname"], "Nobody"), strict=True):
        first[case] = own.copy()
        first[case].loc[0, NAMES] = surname, person["born"]

    sizes, sums = {}, {}
    with house_in(tmp_path) as house:
        for number, (case, table) in enumerate(first.items()):
            results = completed(
                play(
                    house,
                    f"s{number}",
                    params,
                    Layout.lattice(3),
                    [table, *others],
                    ids=NAMES,
                    dictionary=[numbers(VALUES, 0)],
                    preparation=[Preparation()],
                )
            )
            sizes[case] = int(np.sum(results["r1c1"].cluster_sizes))
            sums[case] = sum_of_rows(results["r1c1"])
    for case, verdict in VERDICTS.items():
        fewer = sizes["as it is"] - sizes[case]
        read = sums["as it is"] - sums[case]
        away = np.abs(read - person[VALUES].to_numpy(float)).max()
        check(attacked(fewer == 1 and away < 1e-6), verdict)
