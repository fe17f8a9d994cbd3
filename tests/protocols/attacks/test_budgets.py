"""Budgets of a home hold for a file even if terms read it in another way.

``epsilon_total`` and ``intersections_limit`` recognise a table by a digest of what the
terms read. The operator's file never changes; the coordinator reorders fields, or adds
one of which a code is dropped.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.verdicts import Refused

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.cohort import CohortSize
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.protocols.pqmds.params import Privacy
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import (
    check_refused,
    completed,
    house_in,
    numbers,
    play,
)

LAYOUT = Layout.lattice(1, 2)
EPSILON = Refused(Problem.GUARD_REFUSED, "'epsilon_total' is 1")
INTERSECTIONS = Refused(Problem.GUARD_REFUSED, "'intersections_limit' is 1")

COUNTED = Refused(Problem.GUARD_REFUSED, "counted with other parties'")
ASKED = Refused(Problem.GUARD_REFUSED, "--choice allow_shown_together=true")


def tables() -> list[pd.DataFrame]:
    rng = np.random.default_rng(0)
    ids = [f"P{number:02}" for number in range(40)]
    one, two = (
        pd.DataFrame({"id": ids, **{name: rng.normal(0, 1, 40) for name in names}})
        for names in ("ab", "cd")
    )
    one["flag"] = 0
    one.loc[7, "flag"] = 9
    return [one, two]


def test_the_budget_of_noise_knows_a_table_in_another_order(tmp_path: Path) -> None:
    one, two = tables()
    noise = Privacy(mechanism="laplace", epsilon=1.0)
    params = ProductQuantisation(
        n_clusters=2, sub_dim=1, codebook_size=4, privacy=noise
    )
    rules = {
        slot: {"epsilon_total": 1.0, "epsilon_limit": 1.0} for slot in LAYOUT.names
    }
    with house_in(tmp_path) as house:
        first, second = (
            play(
                house,
                fields[:2],
                params,
                LAYOUT,
                [one[["id", "a", "b"]], two],
                ids="id",
                rules=rules,
                dictionary=[numbers(names, kind="number") for names in fields.split()],
            )
            for fields in ("ab cd", "ba dc")
        )
    completed(first)
    check_refused(second, EPSILON)


def test_the_limit_of_intersections_knows_a_table_with_a_field_more(
    tmp_path: Path,
) -> None:
    one, two = tables()
    params = ProductQuantisation(n_clusters=2, sub_dim=2, alignment={"method": "ecdh"})
    with house_in(tmp_path) as house:
        outcomes = []
        for name, fields in (("one", ["a", "b"]), ("two", ["a", "b", "flag"])):
            dictionary = [
                numbers(fields, kind="number", codes={"flag": ("9",)}),
                numbers("cd", kind="number"),
            ]
            outcomes.append(
                play(
                    house,
                    name,
                    params,
                    LAYOUT,
                    [one[["id", *fields]], two],
                    ids="id",
                    rules={"r1c1": {"intersections_limit": 1}},
                    dictionary=dictionary,
                    preparation=[Preparation(missing="drop")] * 2,
                )
            )
    completed(outcomes[0])
    check_refused(outcomes[1], INTERSECTIONS)


def test_rows_are_counted_with_those_of_others_once(tmp_path: Path) -> None:
    """A second count with one more person would show whether the other has that person."""
    one, two = tables()
    with house_in(tmp_path) as house:
        outcomes = [
            play(house, f"s{n}", CohortSize(), LAYOUT, [one[:n], two], ids="id")
            for n in (29, 30)
        ]
    completed(outcomes[0])
    check_refused(outcomes[1], COUNTED)


@pytest.mark.parametrize("allows", [False, True])
@pytest.mark.quick(1)
def test_a_count_by_other_ids_and_fields_raises_a_question(
    tmp_path: Path, *, allows: bool
) -> None:
    """A home cannot tell whether such a table is of the same people."""
    rng = np.random.default_rng(1)
    ids = [f"Q{number}" for number in range(40)]
    others = [pd.DataFrame({"id": ids, name: rng.normal(size=40)}) for name in "xy"]
    choices = {"choices": {"allow_shown_together": True}} if allows else {}
    rules = dict.fromkeys(LAYOUT.names, choices)
    with house_in(tmp_path) as house:
        outcomes = [
            play(house, f"s{n}", CohortSize(), LAYOUT, each, ids="id", rules=rules)
            for n, each in enumerate((tables(), others))
        ]
    completed(outcomes[0])
    if allows:
        completed(outcomes[1])
    else:
        check_refused(outcomes[1], ASKED)
