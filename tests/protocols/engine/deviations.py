"""Deviations of an analyst from an honest session, drawn from a seed.

Each is one message to one party that an honest analyst would not have sent there and
then: of another time, without what belongs to it, with other content, or under another
name. The party's journal and memory are those of the honest session.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from support.lies import fit_past, written

from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Packet
from clustering_protocols.terms.canonical import canonical_json
from tests.protocols.engine.changed_packets import (
    Changed,
    another_value,
    change_address,
    change_array,
    change_envelopes,
    change_kind,
    change_value,
    stages_of,
)
from tests.protocols.engine.recorded import Recorded, Standing, honest

CONSISTENT = 0.8
"""The share of lies in which the transcript that the party receives fits the lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One deviation: the session, slot and task that it concerns, and the lie.

    index: the position of the task among those that the slot received.
    """

    protocol: str
    example: int
    slot: str
    index: int
    lie: Changed = field(repr=False)

    @property
    def session(self) -> Recorded:
        return honest(self.protocol, self.example)

    @property
    def at(self) -> Standing:
        return self.session.standings[self.slot][self.index]

    @property
    def changed(self) -> set[str] | None:
        """Return which fields of the record differ; None if more than these do."""
        own, lie = packets.parse(self.at.task), packets.parse(self.lie.content)
        if _beside(own) != _beside(lie):
            return None
        before, after = own.header.record["values"], lie.header.record["values"]
        names = {name for name in before if before[name] != after.get(name)}
        return names | {
            name
            for name, array in own.arrays.items()
            if not np.array_equal(array, lie.arrays.get(name, array[None]))
        }

    def __str__(self) -> str:
        at = packets.parse(self.at.task)
        return (
            f"example {self.example}, {self.slot}, stage {at.address.stage!r}, round "
            f"{at.address.round}, {at.header.record['kind']!r}: {self.lie.told}"
        )


def draw(protocol: str, examples: list[int], seed: str) -> Drawn:
    rng = random.Random(seed)
    while True:
        example = rng.choice(examples)
        session = honest(protocol, example)
        slot = rng.choice([s for s, known in session.standings.items() if known])
        tasks = [at.task for at in session.standings[slot]]
        # The analyst alone decides whether there is a second attempt.
        first = [
            i for i, t in enumerate(tasks) if packets.parse(t).address.attempt == 1
        ]
        index = rng.choice(first)
        lie = rng.choice(_WAYS)(rng, packets.parse(tasks[index]), session)
        if lie is not None and rng.random() < CONSISTENT:
            fitted = fit_past(session.agreement, lie.content, tasks[index])
            lie = Changed(f"{lie.told}, and so was everybody", fitted)
        if lie is not None and lie.content != tasks[index]:
            return Drawn(
                protocol=protocol, example=example, slot=slot, index=index, lie=lie
            )


def _beside(packet: Packet) -> tuple[Any, ...]:
    record = {k: v for k, v in packet.header.record.items() if k != "values"}
    address = packet.address.model_copy(update={"attempt": 1})
    sealed = [envelope.sealed for envelope in packet.envelopes]
    return address, record, packet.header.expects, packet.header.envelopes, sealed


# At another time


def _other_task(
    rng: random.Random, packet: Packet, session: Recorded
) -> Changed | None:
    """Repeat an earlier task, or send a later one early, under the open number."""
    own = packet.address
    tasks = [packets.parse(at.task) for at in session.standings[own.slot]]
    others = [task for task in tasks if task.address != own]
    if not others:
        return None
    other = rng.choice(others)
    address = other.address
    if rng.random() < 0.7:  # otherwise under its own number
        when = dict(own.when) | {"stage": address.stage}
        address = address.model_copy(update=when)
    told = f"the task of round {other.address.round}"
    return Changed(told, written(other, address=address))


def _other_session(rng: random.Random, packet: Packet, session: Recorded) -> Changed:
    """Replay a task of another session of the same terms, under this one's address."""
    other = _same_task(packet, session.twin())
    if rng.random() < 0.2:
        return Changed("another session's task", written(other))
    told = "another session's task under this address"
    return Changed(told, written(other, address=packet.address))


def _same_task(packet: Packet, session: Recorded) -> Packet:
    """Return the task of another session's same round, or its last task."""
    tasks = [packets.parse(at.task) for at in session.standings[packet.address.slot]]
    when = packet.address.when
    return next((task for task in tasks if task.address.when == when), tasks[-1])


def _weaker_terms(rng: random.Random, packet: Packet, session: Recorded) -> Changed:
    """Name the digest of an agreement whose terms differ in one parameter."""
    terms = session.session.terms
    params = session.session.params.model_dump(mode="json")
    name = rng.choice(sorted(params))
    params[name] = None
    choice = terms.protocol.model_copy(update={"params": params})
    weaker = terms.model_copy(update={"protocol": choice})
    digest = sha256(canonical_json(weaker)).hexdigest()
    address = packet.address.model_copy(update={"agreement": digest})
    return Changed(f"terms without {name!r}", written(packet, address=address))


# With another past


def _other_past(rng: random.Random, packet: Packet, session: Recorded) -> Changed:
    """Omit a line of the transcript, send it twice, change it, or replace all lines."""
    lines = list(packet.history)
    at = rng.randrange(len(lines))
    how = rng.choice(["left out", "told twice", "other", "another's"])
    if how == "left out":
        del lines[at]
    elif how == "told twice":
        lines.insert(at, lines[at])
    elif how == "other":
        fields = json.loads(lines[at])
        name = rng.choice(sorted(fields))
        fields[name] = another_value(rng, fields[name])
        lines[at] = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    else:
        lines = list(_same_task(packet, session.twin()).history)
    told = f"line {at} of {len(packet.history)} is {how}"
    return Changed(told, packets.encode_packet(replace(packet, history=lines)))


def _other_signatures(
    rng: random.Random, packet: Packet, session: Recorded
) -> Changed | None:
    """Withhold the signatures of the opening, or one of them, or spoil one."""
    del session
    signatures = packet.signatures.copy()
    if not len(signatures):
        return None
    at = rng.randrange(len(signatures))
    how = rng.choice(["withheld", "missing", "spoilt"])
    if how == "withheld":
        signatures = packets.UNSIGNED
    elif how == "missing":
        signatures[at] = 0
    else:
        signatures[at, rng.randrange(64)] ^= 1 << rng.randrange(8)
    lie = packets.encode_packet(replace(packet, signatures=signatures))
    return Changed(f"signature {at} is {how}", lie)


def _other_answer(
    rng: random.Random, packet: Packet, session: Recorded
) -> Changed | None:
    """Ask for an answer of another kind or size."""
    expects = packet.header.expects
    if expects is None:
        return None
    dims = dict(expects.dims)
    if dims and rng.random() < 0.7:
        name = rng.choice(sorted(dims))
        dims[name] += rng.choice([-1, 1, 1000])
        changed = expects.model_copy(update={"dims": dims})
    else:
        kinds = [e.answer.kind for s in stages_of(session) for e in s.exchanges]
        changed = expects.model_copy(update={"kind": rng.choice(kinds)})
    return Changed("another answer is expected", written(packet, expects=changed))


_WAYS: list[Callable[[random.Random, Packet, Recorded], Changed | None]] = [
    *[_other_task] * 3,
    *[_other_session] * 2,
    *[change_address] * 2,
    _weaker_terms,
    *[change_envelopes] * 3,
    *[change_value] * 3,
    *[change_array] * 4,
    _other_answer,
    change_kind,
    *[_other_past] * 2,
    _other_signatures,
]
