"""Messages of a protocol as data, from the declarations that both sides check with.

Anyone who writes a party in another language reads here what the code enforces: kinds,
versions, fields, dtypes, shapes and bounds, and the order of rounds. A protocol's
stages depend on parameters and layout; its examples together use what they offer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clustering_protocols import catalogue
from clustering_protocols.contract import Example, Params, Stage
from clustering_protocols.engine.signatures import (
    build_closing,
    build_opening,
    labelled_by,
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


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ArrayField(_Table):
    """An array of a message."""

    name: str
    dtype: str = Field(description="numpy's name of the type of an item.")
    shape: list[str | int] = Field(
        description="One entry per axis: equal symbols are equal sizes in one message."
    )
    bounds: tuple[float | None, float | None] = Field(
        description="Least and largest item that is allowed; null where there is none."
    )


class WireMessage(_Table):
    """One kind of message within a stage."""

    stage: str
    kind: str
    version: int
    role: Role
    sender: str
    reader: str
    reach: Reach = Field(
        description="Of what a party sends: who can read it (readable: somebody; hidden: "
        "nobody alone), or that it only serves to agree."
    )
    arrays: list[ArrayField]
    values: dict[str, Any] = Field(
        description="JSON Schema of the fields that are no arrays."
    )


class RoundOrder(_Table):
    """A task and the contribution that answers it.

    least, most: how often a party is asked in a session.
    audience: within which group everybody is told the same task.
    own: fields in which tasks of one group differ all the same.
    """

    task: str
    contribution: str
    least: int
    most: int
    audience: Audience
    own: list[str]


class StageOrder(_Table):
    """A stage: its rounds in the order in which they come, and its envelopes."""

    name: str
    rounds: list[RoundOrder]
    envelopes: list[str]
    results: list[str]


class SessionOrder(_Table):
    """The stages of one session: of an example's parameters and layout."""

    slots: list[str]
    params: dict[str, Any] = Field(description="Parameters other than their defaults.")
    stages: list[StageOrder]


class MessageTable(_Table):
    """All messages of a protocol, and the stages of sessions that it shows."""

    protocol: str
    version: int
    messages: list[WireMessage]
    sessions: list[SessionOrder]


def build_message_table(name: str) -> MessageTable:
    """Return the messages of a protocol; InvalidParameters if there is none such."""
    known = catalogue.protocol(name)
    chains = [(each, _chain(name, each)) for each in known.reference().examples()]
    sessions = (
        SessionOrder(
            slots=list(example.layout.names),
            params=catalogue.find_changed_params(example.params),
            stages=_orders(chain),
        )
        for example, chain in chains
        if not _reproduces(example.params)
    )
    found: dict[str, SessionOrder] = {}
    for session in sessions:
        found.setdefault(repr(session.stages), session)
    return MessageTable(
        protocol=name,
        version=known.version,
        messages=_distinct(
            message
            for stages in (*(chain for _, chain in chains), _optional())
            for stage in stages
            for message in _messages_of(stage)
        ),
        sessions=list(found.values()),
    )


def _reproduces(params: Params) -> bool:
    """Return whether parameters are those of a paper alone: no session may have them."""
    described = type(params).model_json_schema()["properties"]
    changed = catalogue.find_changed_params(params)
    return any(described[name].get("deprecated", False) for name in changed)


def _chain(name: str, example: Example[Any]) -> tuple[Stage, ...]:
    known = catalogue.protocol(name)
    own = tuple(known.stages(example.params, example.layout))
    quorum = known.quorum(example.params, example.layout)
    least = int(quorum == len(example.layout.slots))
    return build_opening(), *own, build_closing(own[-1:], 1, least=least)


def _optional() -> tuple[Stage, ...]:
    """Return what terms of any protocol may add: preparation, profiles, several runs."""
    profiles = profiling.stage(Release(profiles="everybody"), labelled_by(()), "slot")
    closing = build_closing((profiles,), 2, least=1)
    return filling.stage(), site_effects.stage(), profiles, closing


def _orders(stages: Iterable[Stage]) -> list[StageOrder]:
    return [
        StageOrder(
            name=stage.name,
            rounds=[
                RoundOrder(
                    task=each.task.kind,
                    contribution=each.answer.kind,
                    least=each.least,
                    most=each.most,
                    audience=each.audience,
                    own=list(each.own),
                )
                for each in stage.exchanges
            ],
            envelopes=[each.kind for each in stage.envelopes],
            results=[each.kind for each in stage.results],
        )
        for stage in stages
    ]


def _messages_of(stage: Stage) -> Iterator[WireMessage]:
    for exchange in stage.exchanges:
        yield _describe(stage, exchange.task, "task")
        yield _describe(stage, exchange.answer, "contribution")
    for sealed in stage.envelopes:
        yield _describe(stage, sealed, "envelope")
    for result in stage.results:
        yield _describe(stage, result, "result")


def _describe(stage: Stage, record: type[Record], role: Role) -> WireMessage:
    schema = record.model_json_schema()
    fields = schema.pop("properties", {})
    arrays = {name: each for name, each in fields.items() if "dtype" in each}
    values = {name: each for name, each in fields.items() if name not in arrays}
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
                dtype=each["dtype"],
                shape=each["shape"],
                bounds=(each.get("minimum"), each.get("maximum")),
            )
            for name, each in arrays.items()
        ],
        values={**schema, "properties": values, "required": required},
    )


def _distinct(messages: Iterable[WireMessage]) -> list[WireMessage]:
    """Return messages in their order, what is said again once."""
    return list({message.model_dump_json(): message for message in messages}.values())
