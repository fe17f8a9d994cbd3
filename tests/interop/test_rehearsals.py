"""The client answers as a party in Python would, message for message, without a network.

One process of the client plays all of these sessions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from clustering_protocols import engine
from clustering_protocols.contract import Params
from clustering_protocols.engine import packets
from clustering_protocols.protocols.dc.params import DataCollaboration
from clustering_protocols.protocols.llf.params import LosslessFederated
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.terms import Layout
from party_sdk.conformance import contributions
from party_sdk.conformance.programs import ProgramProcess
from party_sdk.lab import WireRehearsal, draw_tables
from party_sdk.lab.wire_rehearsal import RehearsedSession
from tests.interop.client_process import bundle, require_client

ROWS, COLUMNS = Layout.lattice(4), Layout.lattice(1, 4)
FIRST, SECOND, _, LAST = ROWS.names
Away = Mapping[tuple[str, int], Collection[str]]
"""Who does not come, by the kind of a task and which time it is asked."""


@pytest.fixture(scope="module")
def program() -> Iterator[ProgramProcess]:
    require_client()
    with ProgramProcess(["node", bundle("conformance/main.ts")]) as client:
        yield client


class Absences(RehearsedSession):
    """A session in which some do not come for their task."""

    def __init__(self, *given: Any, away: Away, **more: Any) -> None:
        self.away, self.rounds = away, Counter[str]()
        super().__init__(*given, **more)

    def keep(self, move: engine.Move) -> engine.Move:
        if isinstance(move, engine.Opened):
            kind = kind_of(move)
            self.rounds[kind] += move.attempt == 1
            self.missing = self.away.get((kind, self.rounds[kind]), ())
        return super().keep(move)

    def turn(
        self, absent: Collection[str] = (), told: Mapping[str, bytes] | None = None
    ) -> None:
        super().turn({*absent, *self.missing}, told)


def kind_of(opened: engine.Opened) -> str:
    task = packets.read(next(iter(opened.tasks.values())))
    return str(task.header.record["kind"])


@dataclass(frozen=True, kw_only=True)
class LateRehearsal(WireRehearsal):
    away: Away = field(default_factory=dict)

    def begin(self) -> RehearsedSession:
        return Absences(
            *(self.params, self.layout, self.tables, self.seed),
            session="wards",
            away=self.away,
            **self.sections,
        )


def play(
    program: ProgramProcess,
    params: Params,
    layout: Layout,
    slot: str,
    away: Away | None = None,
    **sections: Any,
) -> Counter[str]:
    """Return how often each task was asked of the client, which answered all rightly."""
    tables = draw_tables(layout, 40, 2, 3, params)
    rehearsal = LateRehearsal(
        params=params,
        layout=layout,
        tables=tables,
        slot=slot,
        seed=3,
        away=away or {},
        sections=sections,
    )
    played = list(rehearsal.play(program))
    assert [each.sentence for each in played if each.wrong] == []
    assert played[-1].due == "labels"
    return Counter(each.asks for each in played)


def fuzzy(n_columns: int, **more: Any) -> LosslessFederated:
    """Return terms with a given start: another is the choice of the party that leads."""
    said = {"algorithm": "fuzzy_cmeans", "small_cohorts": "allow", "max_iter": 6}
    start = tuple((float(each),) * n_columns for each in (0, 5, 9))
    given = {"n_clusters": 3, "init": "given", "initial_centroids": start}
    return LosslessFederated.model_validate({**given, **said, "tol": 0, **more})


@pytest.mark.parametrize(
    ("slot", "fuzzifier"), [(FIRST, "auto"), (FIRST, 1.5), (LAST, 2.0)]
)
def test_degrees_of_split_rows(
    program: ProgramProcess, slot: str, fuzzifier: float
) -> None:
    params = fuzzy(2, fuzzifier=fuzzifier)
    assert play(program, params, ROWS, slot)["update"] == 6


@pytest.mark.parametrize(("place", "fuzzifier"), [(0, "auto"), (0, 2.0), (3, 1.5)])
def test_degrees_of_split_columns(
    program: ProgramProcess,
    monkeypatch: pytest.MonkeyPatch,
    place: int,
    fuzzifier: float,
) -> None:
    """Powers differ in the last digit, and so do distances to means by degrees."""
    monkeypatch.setitem(contributions.ROUNDED, ("updates", "distances"), 0)  # type: ignore[arg-type]
    params = fuzzy(8, fuzzifier=fuzzifier)
    assert play(program, params, COLUMNS, COLUMNS.names[place])["measure"] == 1 + 7


QUORUM: dict[str, tuple[str, Away]] = {
    "the last is away": (
        FIRST,
        {("update", 2): [LAST], ("close", 1): [LAST], ("gather", 1): [SECOND]},
    ),
    "the first is away, who leads": (
        SECOND,
        {("update", 2): [FIRST], ("close", 1): [FIRST], ("tell", 1): [FIRST]},
    ),
    "it is away in an update": (FIRST, {("update", 2): [FIRST]}),
    "it misses labels and means": (
        LAST,
        {("update", 3): [LAST], ("close", 1): [LAST], ("gather", 1): [LAST]},
    ),
    "it misses the end": (
        SECOND,
        {("close", 1): [SECOND], ("gather", 1): [SECOND], ("sign", 2): [SECOND]},
    ),
}


@pytest.mark.parametrize("case", QUORUM)
def test_a_quorum_goes_on_without_who_is_late(
    program: ProgramProcess, case: str
) -> None:
    slot, away = QUORUM[case]
    algorithm = "cmeans" if slot == FIRST else "fuzzy_cmeans"
    params = fuzzy(2, algorithm=algorithm, quorum=3)
    play(program, params, ROWS, slot, away)


LLF = LosslessFederated(n_clusters=3, max_iter=6)
SEVERAL = Evaluation(n_clusters=(2, 3))


@pytest.mark.parametrize(
    ("params", "layout", "slot"),
    [
        (LLF, ROWS, LAST),
        (LLF.model_copy(update={"n_init": 3}), ROWS, FIRST),
        (LLF, COLUMNS, COLUMNS.names[0]),
        (DataCollaboration(n_clusters=3), ROWS, LAST),
    ],
)
def test_several_numbers_of_clusters(
    program: ProgramProcess, params: Params, layout: Layout, slot: str
) -> None:
    assert play(program, params, layout, slot, evaluation=SEVERAL)["conclude"] == 1


@pytest.mark.parametrize("slot", [FIRST, LAST])
@pytest.mark.parametrize("algorithm", ["cmeans", "fuzzy_cmeans"])
def test_starts_race(program: ProgramProcess, slot: str, algorithm: str) -> None:
    more = {"algorithm": algorithm, "n_init": 3, "small_cohorts": "allow"}
    play(program, LLF.model_copy(update=more), ROWS, slot)
