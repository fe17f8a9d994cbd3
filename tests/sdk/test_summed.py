"""What a home keeps of the sums of all its sessions, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from support.analyst_process import House
from support.in_process import in_process

from clustering_protocols.catalogue import name_of
from clustering_protocols.common.errors import Cancelled, GuardRefused
from clustering_protocols.contract import Params, RowHistory, row_history
from clustering_protocols.contract.assignment import Assignment
from clustering_protocols.contract.party import Memory
from clustering_protocols.contract.selection import Selection
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated as Llf
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.session_terms import draw_up
from clustering_protocols.shared_stages.sums import RowsSummed
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.preparation.preparation import Treatment
from clustering_protocols.terms.release import Release
from clustering_protocols.terms.schema import numbers
from clustering_protocols.terms.terms import Layout, SessionRequest, Terms, read_terms
from party_sdk.disclosures import sum_history
from party_sdk.disclosures.row_marks import marks_of, row_key
from party_sdk.disclosures.sum_history import (
    KnownRows,
    SummedRows,
    SummedSession,
    history_of,
    together,
)
from party_sdk.party.party_session import PartySession


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with in_process(tmp_path / "analyst", driven=True) as api:
        yield House(api, tmp_path)


def rows(
    names: Sequence[int] | IntArray, *partitions: Sequence[int] | IntArray
) -> SummedSession:
    """Return rows with such marks, in such clusters."""
    history = RowHistory.of_none(len(names))
    for labels in partitions:
        history = history.after(np.array(labels, dtype=np.int64))
    marks = np.array(names, dtype=np.uint64)
    return SummedSession(KnownRows(marks, {}, len(names)), history)


def test_the_row_by_which_two_sessions_differ_follows_from_both() -> None:
    """Neither singles it out."""
    first = rows(range(10), [0] * 10)
    second = rows([7, 3, 4, 9, 8, 1, 2, 6, 5], [0] * 9)
    assert first.history.n_following() == second.history.n_following() == 0
    both = together(second, [first])
    assert both.history.n_following() == 1
    assert (both.known.n_rows, both.known.marks.tolist()) == (
        10,
        [*second.known.marks, 0],
    )
    one_more = rows([3], [0])
    assert together(rows(range(4), [0] * 4), [one_more]).history.n_following() == 1
    assert together(one_more, [rows(range(4), [0] * 4)]).history.n_following() == 1


def test_other_tables_tell_nothing_of_these_rows() -> None:
    other = rows(range(20, 30), [0] * 9 + [1])
    found = together(rows(range(10), [0] * 10), [other])
    assert (found.known.n_rows, found.history.n_following()) == (10, 0)


def random_sessions(rng: np.random.Generator) -> list[tuple[IntArray, list[IntArray]]]:
    found = []
    for _ in range(3):
        names = rng.choice(9, rng.integers(2, 9), replace=False)
        found.append((names, [rng.integers(0, 3, len(names)) for _ in range(2)]))
    return found


@pytest.mark.parametrize("seed", range(25))
def test_sessions_together_are_solved_as_one_table(seed: int) -> None:
    sessions = random_sessions(np.random.default_rng(seed))
    last, *others = [rows(names, *each) for names, each in sessions]
    found = together(last, others)
    sums = []
    for names, partitions in sessions:
        if np.isin(names.astype(np.uint64), found.known.marks).all():
            for labels in partitions:
                sums += [
                    [mark in names[labels == cluster] for mark in found.known.marks]
                    for cluster in range(3)
                ]
    M = np.array(sums, dtype=float)
    leverage = np.einsum("ij,ji->i", np.linalg.pinv(M), M)
    assert found.history.n_following() == int((leverage > 1 - 1e-8).sum())
    assert np.linalg.matrix_rank(M) <= found.history.n_sums


def test_a_home_refuses_what_would_follow_with_earlier_sessions(tmp_path: Path) -> None:
    home = SummedRows(tmp_path)
    home.count("one", rows(range(8), [0] * 8), 0.0)
    for gone in range(1, 4):  # three rows may follow of any table
        fewer = rows([*range(gone), *range(gone + 1, 8)], [0] * 7)
        home.count(f"without {gone}", fewer, 0.0)
    last = rows([0, 1, 2, 3, 4, 5, 6], [0] * 7)
    with pytest.raises(GuardRefused, match=r"4 of your 8 rows.*earlier sessions"):
        SummedRows(tmp_path).count("without 7", last, 0.0)
    SummedRows(tmp_path).count("without 7", last, 0.5)
    again = rows(range(8), [0] * 8, [0] * 4 + [1] * 4)
    home.count("one", again, 1.0)  # of one session only its newest history counts
    assert len(list((tmp_path / "sums").glob("*.arrays"))) == 5


NAMES = ("a", "b", "c")
PEOPLE = np.random.default_rng(0).normal(size=(30, 3))
IDS = [f"patient {number}" for number in range(len(PEOPLE))]


def table(
    rows: FloatArray = PEOPLE, names: Sequence[str] = NAMES, ids: Any = None
) -> MatrixSource:
    return MatrixSource(rows, columns=names, ids=ids)


def add_up(home: Path, use: str, data: MatrixSource) -> None:
    """Count the sum of all rows; of nothing may a row follow."""
    kept = SummedRows(home)
    history = RowHistory.of_none(data.n_rows).after(np.zeros(data.n_rows, np.int64))
    known = KnownRows.of(marks_of(row_key(home), data), use.encode().hex())
    kept.count(use, SummedSession(known, history), 0.0)


FEWER = PEOPLE[1:]


@pytest.mark.threat(140)
@pytest.mark.parametrize("use", ["session/r2c1", "other/r1c1"])
@pytest.mark.parametrize(
    ("ids", "later"),
    [
        (None, table(FEWER)),
        (None, table(FEWER[::-1, ::-1], NAMES[::-1])),
        (None, table(FEWER[:, :2], NAMES[:2])),
        (None, table(np.column_stack([FEWER, FEWER[:, 0]]), "abcd")),
        (IDS, table(FEWER[:, 1:], NAMES[1:], IDS[1:])),
        (IDS, table(FEWER + 1, NAMES, IDS[1:])),
        (IDS, table(FEWER)),
    ],
    ids=[
        "the same columns",
        "another order",
        "a field less",
        "a field more",
        "a field less, with ids",
        "other values, with ids",
        "without ids",
    ],
)
def test_sums_that_isolate_one_row_are_always_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    use: str,
    ids: Any,
    later: MatrixSource,
) -> None:
    """In another session, or at another slot of the same one."""
    monkeypatch.setattr(row_history, "FEWEST", 0)
    add_up(tmp_path, "session/r1c1", table(ids=ids))
    with pytest.raises(GuardRefused, match="earlier sessions"):
        add_up(tmp_path, use, later)
    add_up(tmp_path, "session/r1c1", table(ids=ids))


@pytest.mark.threat(140)
def test_a_large_table_is_known_again_by_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (row_history, sum_history):
        monkeypatch.setattr(module, "MOST_ROWS", len(FEWER) - 1)
    monkeypatch.setattr(row_history, "FEWEST", 1)
    add_up(tmp_path, "one", table())
    with pytest.raises(GuardRefused, match="2 of your 30 rows"):
        add_up(tmp_path, "two", table(FEWER))
    with pytest.raises(GuardRefused, match="2 of your 30 rows"):
        add_up(tmp_path, "two", table(PEOPLE[:, :1], "a"))


def terms_of(params: Params, *, readers: Any = None) -> Terms:
    proposal = SessionRequest(
        protocol={"name": name_of(params), "params": params.model_dump(mode="json")},
        layout=Layout.lattice(3),
        dictionary=(numbers(NAMES, -9, 9),),
        release=Release(profiles=readers) if readers else None,
        seed=0,
    )
    return read_terms(draw_up("s", proposal))


DC = DataCollaboration(n_clusters=2)
LABELLED = Assignment(labels=np.array([0, 0, 1]), chosen=0, result="")


@pytest.mark.threat(140)
def test_what_is_pooled_of_all_rows_is_a_sum_over_them() -> None:
    terms = terms_of(DC)
    assert history_of(Memory(), terms, "r1c1", 5) is None
    memory = Memory().remember([RowsSummed()])
    found = history_of(memory, terms, "r1c1", 5)
    assert found is not None
    assert (found.n_sums, found.all_rows, found.labels.tolist()) == (1, True, [[0]])


def test_sums_of_a_profile_are_of_the_rows_that_take_part() -> None:
    """Of an intersection: others stand in no sum."""
    chosen = Selection(rows=np.array([1, 2, 4]), n_rows={})
    memory = Memory().remember([RowsSummed(), chosen, LABELLED])
    found = history_of(memory, terms_of(DC, readers="members"), "r1c1", 5)
    assert found is not None
    stood = found.labels[:, found.of_row].tolist()
    assert stood == [[-1, 0, 0, -1, 0], [-1, 0, 0, -1, 1]]
    assert (found.n_sums, found.all_rows) == (3, False)
    of_profile = history_of(
        Memory().remember([LABELLED]), terms_of(DC, readers="members"), "r1c1", 3
    )
    assert of_profile is not None
    assert of_profile.n_sums == 2
    assert history_of(Memory().remember([LABELLED]), terms_of(DC), "r1c1", 3) is None


def test_of_a_large_table_sums_are_counted(tmp_path: Path) -> None:
    home = SummedRows(tmp_path)
    many = RowHistory.of_none(1_000_000)
    for _ in range(3):
        many = many.after(np.arange(4))
    marks = np.array([0xABAB], dtype=np.uint64)
    large = SummedSession(KnownRows(marks, {}, 1_000_000), many)
    home.count("one", large, 0.25)
    assert together(large, [large]).history.n_following() == 2 * 10 - 1
    with pytest.raises(GuardRefused, match="19 of your 1000000 rows"):
        home.count("two", large, 1e-5)


def test_beyond_its_bytes_the_oldest_sessions_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = SummedRows(tmp_path)
    table = rows(range(300), [row % 3 for row in range(300)])
    home.count("one", table, 1.0)
    [path] = (tmp_path / "sums").glob("*.arrays")
    monkeypatch.setattr(sum_history, "MOST_BYTES", 2 * path.stat().st_size - 1)
    home.count("two", table, 1.0)
    assert path.stat().st_size < 3_000
    assert sum(p.stat().st_size for p in (tmp_path / "sums").iterdir()) < 8_000
    with pytest.raises(GuardRefused, match="5 of your 300"):
        home.count("two", table, 0.0)


COLUMNS = ("a", "b", "c", "d")
LOGGED = Preparation(fields=(Treatment(name="a", log1p=True),))


@pytest.mark.threat(140)
@pytest.mark.threat(151)
@pytest.mark.parametrize(
    ("params", "more"),
    [
        (Llf(n_clusters=1, max_iter=1, publish="nothing"), {}),
        (
            Llf(n_clusters=1, max_iter=1, publish="nothing"),
            {"preparation": [LOGGED]},
        ),
        (DC, {}),
    ],
    ids=["llf", "another preparation", "moments of dc"],
)
def test_a_session_that_isolates_one_row_is_refused(
    house: House, monkeypatch: pytest.MonkeyPatch, params: Params, more: Any
) -> None:
    """Each tells the sum of all rows alone; together they are the one row.

    That the parties forget the first session makes no difference.
    """
    monkeypatch.setattr(row_history, "FEWEST", 0)
    layout, X = Layout.lattice(3), load_iris().data
    dictionary = [numbers(COLUMNS, 0, 9)]
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
        with pytest.raises(GuardRefused, match=r"1 of your 50 rows.*earlier sessions"):
            runs["r1c1"].result()
        session.cancel()
        for slot in ("r2c1", "r3c1"):
            with pytest.raises(Cancelled):
                runs[slot].result()
