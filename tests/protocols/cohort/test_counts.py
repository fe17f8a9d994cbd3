"""How many people are common: the number in steps, and which rows nobody learns."""

from collections.abc import Sequence

import numpy as np
import pytest

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.engine import packets
from clustering_protocols.protocols.cohort import CohortSize
from clustering_protocols.protocols.cohort.roles import Counted, CountingParty
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.linkage import (
    KeyTokens,
    ListOrder,
    as_bytes,
    find_common_rows,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.simulation import ANALYST, Session
from tests.protocols.preparation.people import KEYS, Person, parties, person

CROWD = [person(number) for number in range(120)]
BY_KEYS = Alignment(method="ecdh", match_keys=KEYS)


def session(*held: Sequence[Person], keys: bool = False, step: int = 10) -> Session:
    alignment = BY_KEYS if keys else Alignment(method="ecdh")
    layout, data = parties(*held)
    return Session(CohortSize(alignment=alignment, step=step), layout, data, seed=5)


def told(ran: Session) -> int:
    simulated = ran.run_to_end()
    summary = simulated.summary
    assert isinstance(summary, Counted)
    texts = {str(each.report) for each in simulated.outcomes.values()}
    assert len(texts) == 1
    return summary.rows_in_common["r1c1"]


@pytest.mark.parametrize("keys", [False, True], ids=["ids", "keys"])
@pytest.mark.parametrize(
    ("held", "step", "n"),
    [
        ((CROWD[:60], CROWD[23:]), 10, 30),
        ((CROWD[:60], CROWD[23:]), 5, 35),
        ((CROWD[:60], CROWD[20:], CROWD[41:50] + CROWD[10:31]), 10, 20),
        ((CROWD[:40], CROWD[31:], CROWD[:80], CROWD[20:100]), 10, 0),
    ],
)
def test_the_number_is_that_of_common_people_rounded_down(
    held: Sequence[Sequence[Person]], step: int, n: int, *, keys: bool
) -> None:
    common = set.intersection(*(set(people) for people in held))
    assert len(common) // step * step == n
    assert told(session(*held, keys=keys, step=step)) == n


def test_rows_without_a_value_of_any_key_are_common_to_nobody() -> None:
    unknown = person(200)._replace(given="", surname="", birth="", phone="")
    held = [[*CROWD[:29], unknown]] * 2
    assert told(session(*held, keys=True)) == 20


def suspected(ran: Session, slot: str) -> IntArray:
    """Return the own rows that analyst and one party together take for common.

    The analyst knows which places of a party's list agree with others', and the party
    which row it put there.
    """
    group = ran.session.layout.row_groups[0]
    sent = {
        message.sender: packets.parse(message.payload).arrays["tokens"]
        for message in ran.sent
        if message.receiver == ANALYST
        and packets.parse(message.payload).header.record["kind"] == KeyTokens.kind
    }
    lists = [as_bytes(s, sent[group[group.index(s) - 1]]) for s in group]
    places = find_common_rows(lists)[group.index(slot)]
    found: IntArray = np.sort(ran.recall(slot, ListOrder).order[places])
    return found


@pytest.mark.threat(98)
@pytest.mark.parametrize("n_parties", [2, 3])
def test_analyst_and_one_party_do_not_learn_which_rows_are_common(
    n_parties: int,
) -> None:
    """Where rows are linked they do: the same attack finds them all."""
    held = [CROWD[:80], CROWD[40:], CROWD[30:90]][:n_parties]
    common = set.intersection(*(set(people) for people in held))
    counted = session(*held, keys=True)
    counted.run_to_end()
    params = ProductQuantisation(n_clusters=2, codebook_size=4, alignment=BY_KEYS)
    linked = Session(params, *parties(*held), seed=5)
    linked.run_to_end()
    for slot, people in zip(counted.session.slots, held, strict=True):
        rows = {row for row, each in enumerate(people) if each in common}
        assert set(suspected(linked, slot).tolist()) == rows
        guess = set(suspected(counted, slot).tolist())
        assert len(guess) == len(rows), "the analyst knows how many"
        hits, chance = len(guess & rows), len(rows) ** 2 / len(people)
        assert abs(hits - chance) < 4 * np.sqrt(len(people)) / 2


def test_parties_read_the_number_alone() -> None:
    """Whoever the common people are, what a party is told has the same bytes."""
    first, other = (
        session(CROWD[:60], people)
        for people in (CROWD[25:], [*CROWD[:35], *CROWD[60:]])
    )
    assert told(first) == told(other) == 30
    results = [ran.final_step.results["r1c1"] for ran in (first, other)]
    records = [packets.parse(each).header.record for each in results]
    assert records[0] == records[1] == {**records[0], "kind": Counted.kind}
    for ran in (first, other):
        tasks = [each for each in ran.sent if each.sender == ANALYST]
        assert not any(packets.parse(each.payload).arrays for each in tasks)


@pytest.mark.parametrize("told", [{"r1c1": 31}, {"r1c1": 70}, {"r1c1": -10}, {}])
def test_a_number_that_cannot_be_is_refused(told: dict[str, int]) -> None:
    ran = session(CROWD[:60], CROWD[25:])
    ran.run_to_end()
    role = CountingParty(alignment=Alignment(method="ecdh"), unit=10)
    with pytest.raises(ProtocolFailed):
        role.conclude(ran.context("r1c1"), Counted(rows_in_common=told), None)
