"""A description of a protocol's messages as data, for clients in other languages.

The description is derived from the declarations that both sides use for their checks:
kinds, versions, fields, dtypes, shapes and bounds, and the order of rounds. A
protocol's stages depend on its parameters and layout; its examples together cover all
stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import Field

from clustering_protocols import catalogue
from clustering_protocols.common.values import Value
from clustering_protocols.contract import Stage
from clustering_protocols.engine.signatures import (
    build_closing,
    build_opening,
    build_outcome_reader,
)
from clustering_protocols.records.record import Reach, Record
from clustering_protocols.shared_stages import (
    imputation as filling,
    profiles as profiling,
    site_effects,
)
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Audience

Role = Literal["task", "contribution", "envelope", "result"]
_SENDERS = {"contribution": "party", "envelope": "party"}
_READERS = {"contribution": "analyst", "result": "party or coordinator"}


class ArrayField(Value):
    """An array in a message."""

    name: str
    dtype: str = Field(description="numpy's name of the type of an item.")
    shape: list[str | int] = Field(
        description="One entry per axis; equal symbols mean equal sizes in one message."
    )
    bounds: tuple[float | None, float | None] = Field(
        description="Smallest and largest allowed item; null if there is no limit."
    )


class WireMessage(Value):
    """One kind of message within a stage."""

    stage: str
    kind: str
    version: int
    role: Role
    sender: str
    reader: str
    reach: Reach = Field(
        description="Who can read a record that a party sends (readable: its receiver; "
        "hidden: nobody alone; agreement: it only serves to agree)."
    )
    arrays: list[ArrayField]
    values: dict[str, Any] = Field(
        description="JSON Schema of the fields that are not arrays."
    )


class RoundOrder(Value):
    """A task and the contribution that answers it.

    least, most: how often a party must and may receive the task in a session.
    audience: the kind of group whose members all receive the same task.
    own: fields in which the tasks of one group may differ.
    """

    task: str
    contribution: str
    least: int
    most: int
    audience: Audience
    own: list[str]


class StageOrder(Value):
    """A stage, with its rounds in order, its envelopes and its results."""

    name: str
    rounds: list[RoundOrder]
    envelopes: list[str]
    results: list[str]


class SessionOrder(Value):
    """The stages of one session, with the parameters and layout of an example."""

    slots: list[str]
    params: dict[str, Any] = Field(description="Parameters other than their defaults.")
    stages: list[StageOrder]


class MessageTable(Value):
    """All messages of a protocol, and the stages of its example sessions."""

    protocol: str
    version: int
    messages: list[WireMessage]
    sessions: list[SessionOrder]


def build_message_table(name: str) -> MessageTable:
    """Return a protocol's messages; raise InvalidParameters for an unknown name."""
    protocol = catalogue.protocol(name)
    sessions: dict[str, SessionOrder] = {}
    messages: dict[str, WireMessage] = {}
    for example in protocol.reference().examples():
        own = tuple(protocol.stages(example.params, example.layout))
        quorum = protocol.quorum(example.params, example.layout)
        least = int(quorum == len(example.layout.slots))
        stages = (build_opening(), *own, build_closing(own[-1:], least=least))
        messages |= {
            message.model_dump_json(): message for message in _stage_messages(stages)
        }
        order = SessionOrder(
            slots=list(example.layout.names),
            params=catalogue.find_changed_params(example.params),
            stages=_stage_orders(stages),
        )
        sessions.setdefault(repr(order.stages), order)
    # Terms may add preparation and profiles to any protocol.
    profiles = profiling.build_stage(
        Release(profiles="everybody"), build_outcome_reader(()), "slot"
    )
    optional = (filling.build_stage(), site_effects.build_stage(), profiles)
    messages |= {
        message.model_dump_json(): message for message in _stage_messages(optional)
    }
    return MessageTable(
        protocol=name,
        version=protocol.version,
        messages=list(messages.values()),
        sessions=list(sessions.values()),
    )


def _stage_orders(stages: Iterable[Stage]) -> list[StageOrder]:
    return [
        StageOrder(
            name=stage.name,
            rounds=[
                RoundOrder(
                    task=exchange.task.kind,
                    contribution=exchange.answer.kind,
                    least=exchange.least,
                    most=exchange.most,
                    audience=exchange.audience,
                    own=list(exchange.own),
                )
                for exchange in stage.exchanges
            ],
            envelopes=[record.kind for record in stage.envelopes],
            results=[record.kind for record in stage.results],
        )
        for stage in stages
    ]


def _stage_messages(stages: Iterable[Stage]) -> Iterator[WireMessage]:
    for stage in stages:
        for exchange in stage.exchanges:
            yield _build_wire_message(stage, exchange.task, "task")
            yield _build_wire_message(stage, exchange.answer, "contribution")
        for sealed in stage.envelopes:
            yield _build_wire_message(stage, sealed, "envelope")
        for result in stage.results:
            yield _build_wire_message(stage, result, "result")


def _build_wire_message(stage: Stage, record: type[Record], role: Role) -> WireMessage:
    schema = record.model_json_schema()
    fields = schema.pop("properties", {})
    arrays = {name: field for name, field in fields.items() if "dtype" in field}
    values = {name: field for name, field in fields.items() if name not in arrays}
    required = [name for name in schema.pop("required", ()) if name in values]
    return WireMessage(
        stage=stage.name,
        kind=record.kind,
        version=record.version,
        role=role,
        sender=_SENDERS.get(role, "analyst"),
        reader=_READERS.get(role, "party"),
        reach=record.reach,
        arrays=[
            ArrayField(
                name=name,
                dtype=field["dtype"],
                shape=field["shape"],
                bounds=(field.get("minimum"), field.get("maximum")),
            )
            for name, field in arrays.items()
        ],
        values={**schema, "properties": values, "required": required},
    )
