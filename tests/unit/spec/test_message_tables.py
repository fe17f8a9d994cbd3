"""Tables of messages say what the code checks, for each message that travels."""

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
