"""Tables of messages say what the code checks, for each message that travels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clustering_protocols import catalogue
from clustering_protocols.contract import Stage
from clustering_protocols.engine.message_tables import (
    MessageTable,
    WireMessage,
    build_message_table,
)
from clustering_protocols.records.record import Record


@pytest.fixture(scope="module", params=catalogue.catalogue())
def table(request: pytest.FixtureRequest) -> MessageTable:
    return build_message_table(request.param)


def own_stages(name: str) -> Iterator[Stage]:
    known = catalogue.protocol(name)
    for example in known.reference().examples():
        yield from known.stages(example.params, example.layout)


def sent_in(stage: Stage) -> set[tuple[str, str, type[Record]]]:
    """Return role, stage and kind of all that travels; states of analysts do not."""
    pairs = [(e.task, e.answer) for e in stage.exchanges]
    return {
        *(("task", stage.name, task) for task, _ in pairs),
        *(("contribution", stage.name, answer) for _, answer in pairs),
        *(("envelope", stage.name, kind) for kind in stage.envelopes),
        *(("result", stage.name, kind) for kind in stage.results),
    }


def listed_as(
    table: MessageTable, role: str, stage: str, kind: str
) -> list[WireMessage]:
    return [
        m for m in table.messages if (m.role, m.stage, m.kind) == (role, stage, kind)
    ]


def test_every_message_is_listed_with_all_its_fields(table: MessageTable) -> None:
    for stage in own_stages(table.protocol):
        for role, name, record in sent_in(stage):
            found = listed_as(table, role, name, record.kind)
            fields = [
                {a.name for a in m.arrays} | m.values["properties"].keys()
                for m in found
            ]
            assert set(record.model_fields) in fields, (role, name, record.kind)
            assert {m.version for m in found} == {record.version}


def test_nothing_is_listed_that_no_stage_sends(table: MessageTable) -> None:
    shared = {"opening", "filling", "site-effects", "profiles", "closing"}
    sent = {
        (role, name, record.kind)
        for stage in own_stages(table.protocol)
        for role, name, record in sent_in(stage)
    }
    listed = {(m.role, m.stage, m.kind) for m in table.messages}
    assert {each for each in listed - sent if each[1] not in shared} == set()
    assert shared & {stage for _, stage, _ in listed} >= {"opening", "closing"}


def test_a_table_names_dtype_shape_bounds_and_who_reads() -> None:
    table = build_message_table("dummy")
    (counted,) = listed_as(table, "contribution", "count", "counted")
    (positions,) = counted.arrays
    assert positions.model_dump() == {
        "name": "positions",
        "dtype": "int64",
        "shape": ["n"],
        "bounds": (0, None),
    }
    assert (counted.sender, counted.reader) == ("party", "analyst")
    (word,) = listed_as(table, "envelope", "greeting", "word")
    assert (word.sender, word.reader) == ("party", "party")
    (confirm,) = listed_as(table, "task", "count", "confirm")
    assert confirm.values["required"] == ["total"]


def test_sessions_have_an_opening_and_a_closing(table: MessageTable) -> None:
    assert table.sessions
    for session in table.sessions:
        names = [stage.name for stage in session.stages]
        assert (names[0], names[-1]) == ("opening", "closing")
        assert session.slots


def test_orders_say_how_often_and_to_whom_a_task_is_told() -> None:
    table = build_message_table("llf")
    updates = table.sessions[0].stages[-2]
    loop = updates.rounds[0]
    assert (loop.task, loop.contribution) == ("update", "sums")
    assert (loop.least, loop.most) == (1, 100)
    assert loop.audience in {"slot", "row", "column", "all"}
