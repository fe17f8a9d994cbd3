"""A person at two parties of split rows: counted in steps, or left out of the later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.lies import altered

from clustering_protocols import catalogue
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidParameters,
    ProtocolFailed,
)
from clustering_protocols.contract.selection import TOOK_PART, Selection
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.session_terms import risks_in
from clustering_protocols.shared_stages.alignment.identifiers import join
from clustering_protocols.shared_stages.alignment.linkage import messages
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout
from party_sdk.home.policy import Policy
from tests.preparation.people import KEYS, Person, person

# of 120 people the first 15 of each later party are with an earlier one, of three
HELD = (range(40), range(25, 65), [*range(35, 40), *range(60, 95)])
TWICE = (0, 15, 10)


def alignment(repeated: str) -> Alignment:
    said = {"method": "ecdh", "match_keys": KEYS, "repeated_people": repeated}
    return Alignment.model_validate(said)


def llf(repeated: str) -> LosslessFederated:
    return LosslessFederated(n_clusters=2, alignment=alignment(repeated))


def spelt(one: Person, place: int) -> Person:
    """A person as a party writes it: the later ones write given names otherwise."""
    return one._replace(given=f"{one.given}x") if place else one


def values_of(numbers: Sequence[int]) -> Any:
    """What is measured of a person is the same wherever it is."""
    drawn = np.random.default_rng(9).normal(size=(200, 3))
    drawn[::2] += 6.0
    return drawn[list(numbers)]


def session(params: Any, held: Sequence[Sequence[int]] = HELD) -> Session:
    layout = Layout.lattice(len(held), 1)
    columns = params.alignment.match_columns
    data = {}
    for place, (slot, numbers) in enumerate(zip(layout.names, held, strict=True)):
        people = [spelt(person(number), place) for number in numbers]
        ids = [join([getattr(each, name) for name in columns]) for each in people]
        data[slot] = MatrixSource(values_of(numbers), ["x", "y", "z"], ids=ids)
    return Session(params, layout, data, seed=5)


def test_a_person_counts_once_and_is_labelled_at_home_elsewhere() -> None:
    running = session(llf("left-out"))
    running.to_the_end()
    outcomes = running.outcomes()
    for slot, numbers, twice in zip(running.data, HELD, TWICE, strict=True):
        part = running.recall(slot, Selection).rows
        left = set(range(40)) - set(part.tolist())
        assert len(left) == twice
        assert outcomes[slot].report[TOOK_PART] == f"{40 - twice} of 40"
        far = np.linalg.norm(
            values_of(numbers)[:, None] - outcomes[slot].centroids, axis=2
        )
        assert (outcomes[slot].labels == far.argmin(axis=1)).all(), "all have labels"
    once = session(llf("left-out"), [range(40), range(40, 65), range(65, 95)])
    once.to_the_end()
    for slot, outcome in once.outcomes().items():
        assert outcomes[slot].cluster_sizes.tolist() == outcome.cluster_sizes.tolist()
        assert np.allclose(outcomes[slot].centroids, outcome.centroids, atol=1e-6)


def test_people_are_counted_in_steps_above_a_floor() -> None:
    running = session(llf("counted"))
    running.until(messages.SelectLinked)
    notes = {slot: running.answer(slot).notes for slot in running.data}
    said = "people whom others have too"
    few = "fewer than 10"
    many, some = (f"{n} to {n + 5} % of the smallest table" for n in (35, 25))
    assert notes["r1c1"][said] == f"r2c1: {many}; r3c1: {few}"
    assert notes["r2c1"][said] == f"r1c1: {many}; r3c1: {some}"
    assert notes["r3c1"][said] == f"r1c1: {few}; r2c1: {some}"
    running.to_the_end()
    for outcome in running.outcomes().values():
        assert (outcome.labels >= 0).all()
        assert outcome.cluster_sizes.sum() == 120


def test_dc_leaves_people_out_whom_no_map_labels() -> None:
    said = DataCollaboration(n_clusters=2, alignment=alignment("left-out"))
    running = session(said)
    running.to_the_end()
    without = [int((o.labels < 0).sum()) for o in running.outcomes().values()]
    assert without == list(TWICE)


@pytest.mark.threat(98)
@pytest.mark.parametrize(
    ("repeated", "slot"), [("left-out", "r1c1"), ("counted", "r2c1")]
)
def test_rows_that_nobody_before_can_have_stay(repeated: str, slot: str) -> None:
    running = session(llf(repeated))
    running.until(messages.SelectLinked)
    lie = altered(
        running,
        slot,
        lambda asked: {
            "rows": asked.rows[1:],
            "n_rows": asked.n_rows | {slot: len(asked.rows) - 1},
        },
    )
    with pytest.raises(ProtocolFailed, match="whom none has twice"):
        running.answer(slot, lie)


@pytest.mark.threat(98)
def test_the_quota_holds_between_all_parties_that_are_compared() -> None:
    sizes = [range(10), range(10, 60)]
    said = LosslessFederated(
        n_clusters=2, allow_two_parties=True, alignment=alignment("counted")
    )
    agreement = session(said, sizes).agreement
    with pytest.raises(GuardRefused, match="150 values of match keys for your 10 rows"):
        Policy().check_roster(agreement, "r1c1")
    Policy().check_roster(agreement, "r2c1")
    Policy(ids_per_row=15).check_roster(agreement, "r1c1")


def test_it_is_said_who_learns_of_repeated_people() -> None:
    for repeated, learns in (("left-out", True), ("counted", False)):
        running = session(llf(repeated))
        codes = set(risks_in(running.session.terms))
        assert "llf.repeated-people-are-counted" in codes
        assert ("llf.later-parties-learn-repeated-people" in codes) == learns
        assert "llf.match-keys-can-be-guessed" in codes


def test_people_are_looked_for_in_split_rows_by_keys() -> None:
    with pytest.raises(InvalidParameters, match="is of split rows"):
        catalogue.protocol("llf").check(llf("counted"), Layout.lattice(1, 3))
    with pytest.raises(ValueError, match="found by match_keys"):
        Alignment(method="ecdh", repeated_people="counted")
