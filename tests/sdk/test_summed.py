"""What a home keeps of the sums of all its sessions, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from support.house import House
from support.in_process import in_process

from clustering_protocols.arrays import IntArray
from clustering_protocols.contract import RowHistory, row_history
from clustering_protocols.data import MatrixSource
from clustering_protocols.errors import Cancelled, GuardRefused
from clustering_protocols.protocols.llf import LosslessFederated as Llf
from clustering_protocols.terms import Layout
from party_sdk import summed
from party_sdk.sealing import SecretFiles
from party_sdk.summed import Summed, SummedRows, table_mark, together


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with in_process(tmp_path / "analyst", driven=True) as api:
        yield House(api, tmp_path)


def rows(
    names: Sequence[int] | IntArray, *partitions: Sequence[int] | IntArray
) -> Summed:
    """Return rows with such marks, in such clusters."""
    history = RowHistory.of_none(len(names))
    for labels in partitions:
        history = history.after(np.array(labels, dtype=np.int64))
    marks = np.array(names, dtype=np.uint64)
    return Summed(marks, len(names), history)


def test_the_row_by_which_two_sessions_differ_follows_from_both() -> None:
    """Neither singles it out."""
    first = rows(range(10), [0] * 10)
    second = rows([7, 3, 4, 9, 8, 1, 2, 6, 5], [0] * 9)
    assert first.history.n_following() == second.history.n_following() == 0
    both = together(second, [first])
    assert both.history.n_following() == 1
    assert (both.n_rows, both.marks.tolist()) == (10, [*second.marks, 0])
    one_more = rows([3], [0])
    assert together(rows(range(4), [0] * 4), [one_more]).history.n_following() == 1
    assert together(one_more, [rows(range(4), [0] * 4)]).history.n_following() == 1


def test_other_tables_tell_nothing_of_these_rows() -> None:
    other = rows(range(20, 30), [0] * 9 + [1])
    found = together(rows(range(10), [0] * 10), [other])
    assert (found.n_rows, found.history.n_following()) == (10, 0)


def test_equal_rows_are_known_by_one_mark_and_none_follows() -> None:
    """Two rows of which nothing differs stand in the same sums, in every session."""
    first = rows([1, 1, 2, 3], [0, 0, 0, 1])
    second = rows([3, 1, 1, 2], [0, 1, 1, 1])
    assert together(second, [first]).history.n_following() == 1


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
        if np.isin(names.astype(np.uint64), found.marks).all():
            for labels in partitions:
                sums += [
                    [mark in names[labels == cluster] for mark in found.marks]
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


def test_of_a_large_table_sums_are_counted(tmp_path: Path) -> None:
    home = SummedRows(tmp_path)
    many = RowHistory.of_none(1_000_000)
    for _ in range(3):
        many = many.after(np.arange(4))
    large = Summed(table_mark("ab" * 32), 1_000_000, many)
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
    monkeypatch.setattr(summed, "MOST_BYTES", 2 * path.stat().st_size - 1)
    home.count("two", table, 1.0)
    assert path.stat().st_size < 3_000
    assert sum(p.stat().st_size for p in (tmp_path / "sums").iterdir()) < 8_000
    with pytest.raises(GuardRefused, match="5 of your 300"):
        home.count("two", table, 0.0)


def test_what_is_kept_is_sealed_with_the_home(tmp_path: Path) -> None:
    table = rows(range(8), [0] * 4 + [1] * 4)
    SummedRows(tmp_path).count("one", table, 1.0)
    [path] = (tmp_path / "sums").glob("*.arrays")
    assert SecretFiles(tmp_path)._secret(tmp_path / "sums") == [path]


@pytest.mark.threat(151)
def test_a_session_over_all_rows_but_one_is_refused_after_one_over_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tells the sum of all rows alone; together they are the one row."""
    monkeypatch.setattr(row_history, "FEWEST", 0)
    params = Llf(n_clusters=1, max_iter=1, publish="nothing")
    layout, X = Layout.lattice(3), load_iris().data
    tables = [MatrixSource(part) for part in np.array_split(X, 3)]
    whole = house.open("whole", params, layout)
    house.run(whole, tables)
    fewer = [MatrixSource(np.array_split(X, 3)[0][1:]), *tables[1:]]
    session = house.open("fewer", params, layout)
    invitations = session.invite()
    parties = {
        slot: house.party(session, invitations, slot, sums_limit=0.0)
        for slot in invitations
    }
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
