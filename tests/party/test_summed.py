"""What a home keeps of the sums of all its sessions, and what follows from them."""

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from support.analyst_process import House
from support.drawn_terms import drawn

from clustering_protocols.common.errors import Cancelled, GuardRefused
from clustering_protocols.contract import Params, RowHistory, row_history
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.published import Assignment
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated as Llf
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.sums import RowsSummed
from clustering_protocols.terms.preparation import Preparation, Treatment
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Layout, Terms
from party_sdk.disclosures.history import (
    History,
    Summed,
    count_derivable_rows,
    merge,
    reveals_few_rows,
    row_history_of,
)
from party_sdk.disclosures.uses import Use
from party_sdk.home.policy import Policy
from party_sdk.party.party_session import PartySession


def summed(
    names: Sequence[int] | IntArray, *partitions: Sequence[int] | IntArray
) -> Summed:
    """Return rows with such marks, in such clusters."""
    history = RowHistory.empty(len(names))
    for labels in partitions:
        history = history.after_partition(np.array(labels, dtype=np.int64))
    return np.array(names, dtype=np.uint64), history


def random_sessions(rng: np.random.Generator) -> list[tuple[IntArray, list[IntArray]]]:
    found = []
    for _ in range(3):
        names = rng.choice(9, rng.integers(2, 9), replace=False)
        found.append((names, [rng.integers(0, 3, len(names)) for _ in range(2)]))
    return found


@pytest.mark.parametrize("seed", range(25))
def test_sessions_together_are_solved_as_one_table(seed: int) -> None:
    sessions = random_sessions(np.random.default_rng(seed))
    connected = set(sessions[0][0])
    for names, _ in sessions * 2:
        if connected & set(names):
            connected |= set(names)
    sessions = [each for each in sessions if connected & set(each[0])]
    apart = (np.arange(20, 24), [np.arange(4)])
    every = [summed(names, *partitions) for names, partitions in [*sessions, apart]]
    rows, found = merge(every)
    assert len(rows) == len(sessions), "all that rows connect, and no other"
    marks, sums = np.full(len(connected), -1), []
    for (names, partitions), numbers in zip(sessions, rows, strict=True):
        assert all((marks[numbers] == names) | (marks[numbers] == -1))
        marks[numbers] = names
        for labels in partitions:
            sums += [np.isin(range(len(marks)), numbers[labels == k]) for k in range(3)]
    assert len(set(marks)) == len(marks)
    M = np.array(sums, dtype=float)
    leverage = np.einsum("ij,ji->i", np.linalg.pinv(M), M)
    derivable = leverage > 1 - 1e-8
    assert found.count_derivable_rows() == int(derivable.sum())
    counts = count_derivable_rows(found, rows, [0] * len(rows))
    assert counts == [int(derivable[numbers].sum()) for numbers in rows]
    assert np.linalg.matrix_rank(M) <= found.n_sums


@pytest.mark.parametrize("seed", range(5))
def test_sessions_over_the_same_rows_are_one(seed: int) -> None:
    """A sum over all rows that both tell is one sum; without labels, sums are counted."""
    rng = np.random.default_rng(seed)
    names, order = np.arange(9), rng.permutation(9)
    first, then, last = (rng.integers(least, 3, 9) for least in (0, -1, 0))
    both = summed(names, first, then, last)[1]
    rows, found = merge([summed(names, first, then), summed(order, last[order])])
    assert [numbers.tolist() for numbers in rows] == [list(names), list(order)]
    assert (found.n_sums, found.all_rows) == (both.n_sums, True)
    assert found.count_derivable_rows() == both.count_derivable_rows()
    large = both.model_copy(update={"whole": False})
    _, found = merge([summed(names), (names.astype(np.uint64), large)])
    assert (found.whole, found.count_derivable_rows()) == (False, both.n_sums)


class Home:
    """A home of which sessions add up rows by clusters."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def adds_up(
        self,
        session: str,
        rows: FloatArray,
        *partitions: Sequence[int],
        share: float = 0.25,
        ids: Any = None,
    ) -> None:
        history = History(self.path)
        marked = history.rows_of(MatrixSource(rows, ids=ids))
        _, told = summed(range(len(rows)), *partitions)
        use = Use(session=session, slot="r1c1", sums=True)
        history.record(use, marked, Policy(sums_limit=share), told)

    def refuses(self, why: str, *session: Any, **more: Any) -> None:
        with pytest.raises(GuardRefused, match=why):
            self.adds_up(*session, **more)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


PEOPLE = np.random.default_rng(0).normal(size=(30, 3))
IDS = [f"patient {number}" for number in range(len(PEOPLE))]
VISITS = [f"patient {number // 2}" for number in range(len(PEOPLE))]
HALVES, ALL_BUT_ONE = [0] * 15 + [1] * 15, [0] * 16 + [1] * 14


@pytest.mark.threat(140)
@pytest.mark.parametrize("ids", [None, IDS, VISITS], ids=["no ids", "ids", "visits"])
def test_a_home_refuses_what_would_follow_with_earlier_sessions(
    home: Home, ids: Any
) -> None:
    """One row moved: its cells are the difference of two sums over the same rows."""
    home.adds_up("one", PEOPLE, HALVES, share=0.0, ids=ids)
    columns = PEOPLE[:, ::-1] if ids is None else PEOPLE * 2
    home.refuses(
        r"1 of your 30 rows.*earlier sessions",
        "two",
        columns,
        ALL_BUT_ONE,
        share=0.0,
        ids=ids,
    )
    home.adds_up("two", columns, ALL_BUT_ONE, ids=ids)
    # of one session only its newest history counts
    home.adds_up("one", PEOPLE, HALVES, HALVES, ids=ids)


def ten_alone(begin: int) -> list[int]:
    """Return clusters of 40 people: each of ten people from ``begin`` on has its own."""
    labels = np.full(40, 10)
    labels[begin : begin + 10] = range(10)
    return labels.tolist()


CROWD = np.random.default_rng(1).normal(size=(1000, 3))
CROWD_IDS = [f"patient {number}" for number in range(len(CROWD))]


@pytest.mark.threat(140)
@pytest.mark.parametrize("large", ["before", "after", "none"])
def test_a_large_session_does_not_raise_the_limit_of_a_small_one(
    home: Home, large: str
) -> None:
    """Ten other rows of 40 are derivable in each session: a quarter, then a half."""
    total = [0] * len(CROWD)
    if large == "before":
        home.adds_up("large", CROWD, total, ids=CROWD_IDS)
    home.adds_up("one", CROWD[:40], ten_alone(0), ids=CROWD_IDS[:40])
    if large == "after":
        home.adds_up("large", CROWD, total, ids=CROWD_IDS)
    home.refuses(
        r"20 of your 40 rows.*10 rows",
        "two",
        CROWD[:40],
        ten_alone(10),
        ids=CROWD_IDS[:40],
    )


@pytest.mark.threat(140)
def test_a_large_session_may_not_reveal_the_rows_of_a_small_one(home: Home) -> None:
    home.adds_up("small", CROWD[:40], ten_alone(0), ids=CROWD_IDS[:40])
    further = [*ten_alone(10), *[11] * (len(CROWD) - 40)]
    home.refuses(
        r"20 of the 40 rows of an earlier", "large", CROWD, further, ids=CROWD_IDS
    )
    # with a smaller limit than before, but no row more
    none_more = [*ten_alone(0), *[11] * (len(CROWD) - 40)]
    home.adds_up("large", CROWD, none_more, ids=CROWD_IDS, share=0.1)


@pytest.mark.threat(140)
def test_of_a_large_table_sums_are_counted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_history, "MOST_ROWS", len(PEOPLE) - 1)
    home.adds_up("one", PEOPLE, HALVES, HALVES, share=0.2)
    home.refuses("7 of your 30 rows", "two", PEOPLE[:, :1], *[HALVES] * 4, share=0.2)
    home.adds_up("two", PEOPLE[:, :1], *[HALVES] * 3, share=0.2)


@pytest.mark.threat(140)
def test_a_small_session_does_not_block_a_large_table_whose_sums_are_counted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_history, "MOST_ROWS", len(CROWD) - 1)
    home.adds_up("pilot", CROWD[:40], [0] * 40, ids=CROWD_IDS[:40])
    partition = [row % 10 for row in range(len(CROWD))]
    home.adds_up("large", CROWD, *[partition] * 20, ids=CROWD_IDS)
    home.refuses(r"of your 1000 rows", "more", CROWD, *[partition] * 10, ids=CROWD_IDS)


def terms_of(params: Params, *, readers: Any = None) -> Terms:
    release = Release(profiles=readers) if readers else None
    dictionary = (numeric_schema("abc", -9, 9),)
    return drawn(params, Layout.lattice(3), dictionary=dictionary, release=release)


DC = DataCollaboration(n_clusters=2, dimensions="all_but_one")
LABELLED = Assignment(labels=np.array([0, 0, 1]), chosen=0, result="")


@pytest.mark.threat(140)
def test_what_is_pooled_of_all_rows_is_a_sum_over_them() -> None:
    terms = terms_of(DC)
    assert row_history_of(Memory(), terms, "r1c1", 5).n_sums == 0
    memory = Memory().remember([RowsSummed()])
    found = row_history_of(memory, terms, "r1c1", 5)
    assert (found.n_sums, found.all_rows, found.labels.tolist()) == (1, True, [[0]])


def test_sums_of_a_profile_are_of_the_rows_that_take_part() -> None:
    terms, memory = terms_of(DC, readers="members"), Memory().remember([LABELLED])
    assert row_history_of(memory, terms, "r1c1", 3).n_sums == 2
    found = row_history_of(memory.remember([RowsSummed()]), terms, "r1c1", 3)
    assert found.labels[:, found.of_row].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert (found.n_sums, found.all_rows) == (2, True)
    assert row_history_of(memory, terms_of(DC), "r1c1", 3).n_sums == 0


COLUMNS = ("a", "b", "c", "d")
LOGGED = Preparation(fields=(Treatment(name="a", log1p=True),))


@pytest.mark.threat(140)
@pytest.mark.threat(151)
@pytest.mark.parametrize(
    ("params", "more"),
    [
        (Llf(n_clusters=1, max_iter=1, publish="nothing"), {}),
        (Llf(n_clusters=1, max_iter=1, publish="nothing"), {"preparation": [LOGGED]}),
        (DC, {}),
    ],
    ids=["llf", "another preparation", "moments of dc"],
)
@pytest.mark.quick(1)
def test_a_session_that_isolates_one_row_is_refused(
    house: House, params: Params, more: Any
) -> None:
    """Each tells the sum of all rows alone; together they are the one row.

    The party is refused before it joins. That the parties forget the first session makes
    no difference.
    """
    layout, X = Layout.lattice(3), load_iris().data
    dictionary = [numeric_schema(COLUMNS, 0, 9)]
    tables = [pd.DataFrame(X[i::3], columns=COLUMNS) for i in range(3)]
    whole = house.open("whole", params, layout, dictionary=dictionary)
    house.run(whole, tables)
    for slot in layout.names:
        PartySession(house.home_of(slot), "whole", slot).forget(everything=True)
    session = house.open("fewer", params, layout, dictionary=dictionary, **more)
    invitations = session.invite()
    parties = {
        slot: house.accept(session, invitations, slot, sums_limit=0.0)
        for slot in invitations
    }
    fewer = [tables[0][1:], *tables[1:]]
    with ThreadPoolExecutor(3) as pool:
        runs = {
            slot: pool.submit(party.run, table)
            for (slot, party), table in zip(parties.items(), fewer, strict=True)
        }
        with pytest.raises(GuardRefused, match="nearly the same rows"):
            runs["r1c1"].result()
        session.cancel()
        for slot in ("r2c1", "r3c1"):
            with pytest.raises(Cancelled):
                runs[slot].result()
    assert not parties["r1c1"].stored.has_joined


# Sums over few rows that follow from the totals of several sessions


def totals_of(*rows: Sequence[int] | range) -> list[np.ndarray]:
    return [np.array(each, dtype=np.uint64) for each in rows]


def has_sum_over_few(totals: list[np.ndarray], minimum: int) -> bool:
    """Return the answer of a search through all sets of fewer rows than ``minimum``."""
    rows = np.unique(np.concatenate(totals))
    M = np.array([np.isin(rows, total) for total in totals], float)
    last = np.eye(len(M))[-1]
    if np.linalg.matrix_rank(M) == np.linalg.matrix_rank(M[:-1]):
        return False  # the last total follows from the others
    for n in range(1, minimum):
        for few in itertools.combinations(range(len(rows)), n):
            rest = np.delete(M, few, axis=1)
            # is there a combination with the last total that is zero on the rest?
            both = np.column_stack([rest, last])
            if np.linalg.matrix_rank(both) > np.linalg.matrix_rank(rest):
                return True
    return False


@pytest.mark.threat(156)
@pytest.mark.parametrize("seed", range(40))
def test_random_totals_are_judged_as_by_a_complete_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_totals, minimum = rng.integers(2, 7), 4
    sizes = rng.integers(1, 5, 6)
    owner = np.repeat(np.arange(6), sizes)
    members = rng.random((n_totals, 6)) < 0.6
    members[:, 0] = True
    totals = totals_of(*(np.flatnonzero(each[owner]) for each in members))
    assert reveals_few_rows(totals, minimum) == has_sum_over_few(totals, minimum)


@pytest.mark.threat(156)
def test_a_sum_over_two_rows_is_found_though_its_parts_have_enough() -> None:
    """Two combinations have ten rows each; other totals split nine of these."""
    common = range(100, 109)
    splits = [[*range(200, 220), *(r for r in common if r >> k & 1)] for k in range(4)]
    before = totals_of(range(200, 220), *splits, [0, *common, *range(300, 320)])
    before += totals_of(range(300, 320))
    assert reveals_few_rows([*before, *totals_of([1, *common])], 3)
    assert not reveals_few_rows([*before, *totals_of([1, 2, 3, *common])], 3)


@pytest.mark.threat(156)
def test_a_sum_that_earlier_totals_reveal_refuses_no_other_session() -> None:
    before = totals_of(range(30), range(1, 30))
    assert reveals_few_rows(before, 10)
    assert not reveals_few_rows([*before, *totals_of(range(40))], 10)
    assert not reveals_few_rows([*before, *totals_of(range(30))], 10)
    assert reveals_few_rows([*before, *totals_of(range(2, 30))], 10)
