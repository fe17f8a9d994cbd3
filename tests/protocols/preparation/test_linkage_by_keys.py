"""Rows linked by match keys: which rows are linked, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.lies import altered

from clustering_protocols.common.errors import (
    InvalidArray,
    InvalidData,
    OverlapTooSmall,
)
from clustering_protocols.contract.published import Selection
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.shared_stages.alignment import linkage
from clustering_protocols.shared_stages.alignment.digests import Digests, RowOrder
from clustering_protocols.shared_stages.alignment.linkage import (
    as_bytes,
    find_common_rows,
    link_rows,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.simulation import Session
from tests.protocols.preparation.people import KEYS, Person, parties, person

CROWD = [person(number) for number in range(40)]


def params(**more: Any) -> ProductQuantisation:
    said = {"method": "ecdh", "match_keys": KEYS, "minimum_share": 0, **more}
    alignment = Alignment.model_validate(said)
    return ProductQuantisation(n_clusters=2, codebook_size=4, alignment=alignment)


def session(*held: Sequence[Person], **more: Any) -> Session:
    chosen = params(**more)
    layout, data = parties(*held, columns=chosen.alignment.match_key_columns)
    return Session(chosen, layout, data, seed=5)


def play(*held: Sequence[Person], **more: Any) -> list[tuple[int, ...]]:
    running = session(*held, **more)
    running.run_to_end()
    rows = [
        running.recall(slot, Selection).rows[running.recall(slot, RowOrder).order]
        for slot in running.data
    ]
    return sorted(zip(*(each.tolist() for each in rows), strict=True))


def test_rows_are_linked_by_the_first_key_on_which_they_agree() -> None:
    other = [
        each._replace(given="otherwise") if n % 2 else each
        for n, each in enumerate(CROWD)
    ]
    moved = [
        e._replace(surname="smith", phone="1") if n == 6 else e
        for n, e in enumerate(other)
    ]
    found = play(CROWD, moved[::-1])
    assert found == [(row, 39 - row) for row in range(40) if row != 6]


@pytest.mark.parametrize("n_parties", [2, 3, 4])
def test_parties_that_hold_other_people_find_the_common_ones(n_parties: int) -> None:
    held = []
    for place in range(n_parties):
        own = [person(100 + 10 * place + n) for n in range(place + 3)]
        held.append([*own, *CROWD[place : 30 + place]])
    found = play(*held)
    common = set.intersection(*(set(each) for each in held))
    assert {held[0][row] for row, *_ in found} == common
    for rows in found:
        assert len({held[place][row] for place, row in enumerate(rows)}) == 1


def test_rows_that_share_a_value_are_not_linked_by_it() -> None:
    twin = CROWD[3]._replace(given="zoe", phone="1")
    twins = [CROWD[3]._replace(phone="2"), twin, *CROWD[4:]]
    found = play(CROWD, twins, match_keys=(KEYS[1],), key_uniqueness=0)
    assert all(rows[0] != 3 for rows in found)
    found = play(CROWD, twins, match_keys=KEYS[:2], key_uniqueness=0)
    assert (3, 0) in found


def test_rows_without_any_value_take_part_in_no_link() -> None:
    bare = Person("", "", "", "")
    found = play([bare, *CROWD], [bare, bare, *CROWD])
    assert found == [(row + 1, row + 2) for row in range(40)]


def test_keys_that_are_not_nearly_unique_are_refused_at_home() -> None:
    few = [each._replace(phone=each.phone[:2]) for each in CROWD]
    _, data = parties(CROWD, few)
    with pytest.raises(InvalidData, match=r"nearly unique.*'phone': \d"):
        params().select_rows(data["r1c2"], shared=True)
    assert params().select_rows(data["r1c1"], shared=True) is None
    assert params().select_rows(data["r1c2"], shared=False) is None, "it links nobody"


def test_too_few_linked_rows_end_the_session_with_no_number() -> None:
    strangers = [person(500 + n) for n in range(40)]
    with pytest.raises(OverlapTooSmall, match="have 0 to 5 % of the smallest table"):
        play(CROWD, strangers)


def tokens(*keys: Sequence[int]) -> Any:
    flat = np.array(keys, dtype=">u8")[..., None]
    return np.concatenate([flat, np.ones((*flat.shape[:2], 3), ">u8")], 2).view(
        np.uint8
    )


def brute(leader: Any, other: Any) -> list[int]:
    found, taken = [-1] * len(leader[0]), set()
    for own, others in zip(leader, other, strict=True):
        for row, value in enumerate(own):
            for place, theirs in enumerate(others):
                if value == theirs and found[row] < 0 and place not in taken:
                    found[row] = place
                    taken.add(place)
    return found


def test_links_are_those_of_a_search_by_hand() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, m = rng.integers(1, 12, 2)
        pools = [rng.permutation(20) for _ in range(3)]
        one = [pool[:n].tolist() for pool in pools]
        two = [rng.permutation(pool[:16])[:m].tolist() for pool in pools]
        found = link_rows(as_bytes("a", tokens(*one)), as_bytes("b", tokens(*two)))
        assert found.tolist() == brute(one, two)


def test_common_rows_are_linked_to_the_leader_by_each_party() -> None:
    one, two, three = ([[1, 2, 3]], [[3, 1, 9]], [[9, 3, 2, 1]])
    sent = [as_bytes("x", tokens(*each)) for each in (one, two, three)]
    assert [each.tolist() for each in find_common_rows(sent)] == [
        [0, 2],
        [1, 0],
        [3, 1],
    ]


def test_tokens_that_come_twice_are_refused() -> None:
    with pytest.raises(InvalidArray, match="contain a duplicate"):
        as_bytes("r1c1", tokens([1, 2], [3, 3]))


def test_rows_without_cells_are_linked_by_no_key() -> None:
    bare = MatrixSource(np.eye(3))
    with pytest.raises(InvalidData, match="a table with the columns given"):
        params().alignment.match_key_values(bare)


@pytest.mark.threat(190)
def test_parties_take_the_analysts_word_for_who_is_linked() -> None:
    """A risk of the terms: cells of one person differ, so parties compare nothing."""
    running = at(linkage.SelectLinked)
    rows = packets.parse(running.open.tasks["r1c2"]).arrays["rows"]
    lie = altered(running, "r1c2", lambda _: {"rows": np.roll(rows, 1)})
    honest = running.answer("r1c1", running.open.tasks["r1c1"]).memory.get(Digests)
    joined = running.answer("r1c2", lie).memory.get(Digests)
    assert honest is not None
    assert joined is not None
    assert joined.rows == honest.rows


def at(kind: type[Any], *held: Sequence[Person]) -> Session:
    running = session(*(held or (CROWD, CROWD)))
    running.play_until(kind)
    return running
