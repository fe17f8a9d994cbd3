"""Programs of sums: when a party computes, what it stores, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from support.pooled_moments import ONE, prepare
from support.tables import cut

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import PartyContext
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import DataSource, MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.records.arrays import IntArray, WordArray
from clustering_protocols.shared_stages.sums import (
    AddUp,
    Findings,
    ProgramStep,
    RowsSummed,
    Sum,
    SumProgram,
    Sums,
    SumTotals,
)
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(3)
X = np.random.default_rng(0).normal(size=(30, 2))
NAMES = LAYOUT.names


def begun() -> Session:
    return prepare(Session(ONE, LAYOUT, cut(X, LAYOUT, [10] * 3), seed=5))


class Doubling:
    """A program of three sums, each of twice what the one before came to."""

    def __init__(self) -> None:
        self.computed: list[str] = []

    def __call__(self, _: PartyContext, data: DataSource) -> Sums[Findings]:
        total = np.array([data.n_rows])
        for name in ("first", "second", "third"):
            total = yield from Sum(
                name,
                local=lambda name=name, total=total: self._local(name, 2 * total),
                fits=lambda words: bool((words < np.uint64(1000)).all()),
                decode=lambda words: words.view(np.int64),
            )
        return Findings([], doubts=str(total[0]))

    def _local(self, name: str, words: IntArray) -> IntArray:
        self.computed.append(name)
        return words


def of(program: Doubling, alone_below: int = 0) -> SumProgram[Findings]:
    return SumProgram(
        "doubling", 3, program, lambda *_: [1, 1, 1], alone_below=alone_below
    )


def turn(
    program: SumProgram[Findings], context: PartyContext, number: int, total: WordArray
) -> tuple[ProgramStep[Findings], PartyContext]:
    """Return a party's turn, and where it stands afterwards: from bytes alone."""
    task = AddUp(phase=number, total=total)
    data = MatrixSource(X[:10])
    played = program.run_to_sum(context, data, number, task, task.total)
    memory = Memory(context.memory.remember(played.remember).entries)
    return played, replace(context, memory=memory)


NOTHING = np.empty(0, dtype=np.uint64)


def test_a_party_computes_each_sum_once_and_forgets_the_totals_at_the_end() -> None:
    doubling = Doubling()
    program = of(doubling, alone_below=4)  # a group of three: own words are the total
    context = begun().context("r1c1")
    for number, name in enumerate(["first", "second", "third"], start=1):
        played, context = turn(program, context, number, NOTHING)
        assert doubling.computed[-1] == name
        assert len(doubling.computed) == number
        assert played.result is None
        assert context.recall(SumTotals).sizes == [1] * (number - 1)
    played, context = turn(program, context, 4, NOTHING)
    assert played.outcome.doubts == "80"
    assert len(doubling.computed) == 3
    totals = context.recall(SumTotals)
    assert not totals.totals.size
    assert not totals.own.size
    with pytest.raises(ProtocolFailed, match="out of order"):
        turn(program, context, 5, NOTHING)


@pytest.mark.parametrize("number", [1, 3, 4])
def test_a_sum_out_of_order_is_refused(number: int) -> None:
    program = of(Doubling(), alone_below=4)
    _, context = turn(program, begun().context("r1c1"), 1, NOTHING)
    with pytest.raises(ProtocolFailed, match="out of order"):
        turn(program, context, number, NOTHING)


def test_another_program_starts_anew() -> None:
    context = begun().context("r1c1")
    _, context = turn(of(Doubling(), alone_below=4), context, 1, NOTHING)
    other = replace(of(Doubling(), alone_below=4), name="another")
    played, context = turn(other, context, 1, NOTHING)
    assert played.result is None
    assert context.recall(SumTotals).program == "another"


@pytest.mark.parametrize("n_parties", [2, 3])
def test_a_party_notes_that_its_rows_were_summed_with_the_first_share(
    n_parties: int,
) -> None:
    layout = Layout.lattice(n_parties)
    data = cut(X, layout, [30 // n_parties] * n_parties)
    session = Session(DataCollaboration(n_clusters=2), layout, data, seed=5)
    while session.open.stage != "moments":
        session.play_round()
        assert all(m.get(RowsSummed) is None for m in session.memories.values())
    session.play_round()
    assert all(m.get(RowsSummed) is not None for m in session.memories.values())
