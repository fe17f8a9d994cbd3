"""Deviations of an analyst from an honest session, drawn from a seed.

Each is one message to one party that an honest analyst would not have sent there and
then: of another time, without what belongs to it, with other content, or under another
name. What the party knew before is what it knew in the honest session.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from support.lies import fit_past, written

from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Envelope, Packet
from clustering_protocols.terms.canonical import canonical_json
from tests.protocols.engine.recorded import Recorded, Standing, honest

MAX_NUMBER = 2**53 - 1  # the largest that canonical JSON writes
CONSISTENT = 0.8
"""How often what a party is told of the past fits the lie."""


class Lie(NamedTuple):
    """A message that reaches a party instead of its task.

    told: what was done, for the report.
    """

    told: str
    task: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One deviation: who is told what, and where it stood.

    index: place of the task among those that the slot was told.
    """

    protocol: str
    example: int
    slot: str
    index: int
    lie: Lie = field(repr=False)

    @property
    def session(self) -> Recorded:
        return honest(self.protocol, self.example)

    @property
    def at(self) -> Standing:
        return self.session.standings[self.slot][self.index]

    @property
    def changed(self) -> set[str] | None:
        """Return which fields of the record differ; None where more than these do."""
        own, lie = packets.parse(self.at.task), packets.parse(self.lie.task)
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
        known = session.standings[slot]
        first = [i for i, at in enumerate(known) if _attempt(at.task) == 1]
        index = rng.choice(first)  # whether there is a second one is up to the analyst
        context = _Context(rng, protocol, example, slot, index)
        lie = rng.choice(_WAYS)(context)
        if lie is not None and rng.random() < CONSISTENT:
            fitted = fit_past(session.agreement, lie.task, context.task)
            lie = Lie(f"{lie.told}, and so was everybody", fitted)
        if lie is not None and lie.task != context.task:
            return Drawn(
                protocol=protocol, example=example, slot=slot, index=index, lie=lie
            )


def _attempt(task: bytes) -> int:
    return packets.parse(task).address.attempt


def _beside(packet: Packet) -> tuple[Any, ...]:
    record = {k: v for k, v in packet.header.record.items() if k != "values"}
    address = packet.address.model_copy(update={"attempt": 1})
    sealed = [envelope.sealed for envelope in packet.envelopes]
    return address, record, packet.header.expects, packet.header.envelopes, sealed


class _Context(NamedTuple):
    rng: random.Random
    protocol: str
    example: int
    slot: str
    index: int

    @property
    def session(self) -> Recorded:
        return honest(self.protocol, self.example)

    @property
    def standings(self) -> list[Standing]:
        return self.session.standings[self.slot]

    @property
    def task(self) -> bytes:
        return self.standings[self.index].task

    @property
    def packet(self) -> Packet:
        return packets.parse(self.task)


def sealed_in(packet: Packet, envelopes: list[Envelope]) -> bytes:
    labels = [envelope.label for envelope in envelopes]
    header = packet.header.model_copy(update={"envelopes": labels})
    return packets.encode_packet(replace(packet, header=header, envelopes=envelopes))


# At another time


def _another_time(context: _Context) -> Lie | None:
    """Repeat what was asked before, or ask before its time, under the open number."""
    others = [i for i in range(len(context.standings)) if i != context.index]
    if not others:
        return None
    other = context.rng.choice(others)
    packet = packets.parse(context.standings[other].task)
    address = packet.address.model_copy(
        update=dict(context.packet.address.when) | {"stage": packet.address.stage}
    )
    if context.rng.random() < 0.3:
        address = packet.address  # under its own number
    told = f"what it is asked as its task {other}"
    return Lie(told, written(packet, address=address))


def _another_attempt(context: _Context) -> Lie:
    attempt = context.rng.choice([0, 2, 3, 5, 6, 2**31])
    packet = context.packet
    address = packet.address.model_copy(update={"attempt": attempt})
    return Lie(f"attempt {attempt}", written(packet, address=address))


def _another_session(context: _Context) -> Lie:
    """Replay a task of another session of the same terms, under this one's address."""
    other = honest(context.protocol, context.example, "another")
    known = other.standings[context.slot]
    packet = packets.parse(known[min(context.index, len(known) - 1)].task)
    if context.rng.random() < 0.2:
        return Lie("another session's task", written(packet))
    told = "another session's task under this address"
    return Lie(told, written(packet, address=context.packet.address))


def _another_address(context: _Context) -> Lie:
    part = context.rng.choice(["session", "agreement", "slot", "stage", "round"])
    address = context.packet.address
    now = getattr(address, part)
    values: dict[str, list[Any]] = {
        "session": ["other", ""],
        "agreement": ["0" * 64, ""],
        "slot": [*context.session.standings, "r9c9", ""],
        "stage": [s.name for s in _stages(context)] + ["other"],
        "round": [0, address.round - 1, address.round + 1, 2**31],
    }
    new = context.rng.choice([value for value in values[part] if value != now])
    changed = address.model_copy(update={part: new})
    return Lie(f"{part} is {new!r}", written(context.packet, address=changed))


def _weaker_terms(context: _Context) -> Lie:
    """Say the digest of an agreement whose terms differ in one parameter."""
    terms = context.session.session.terms
    params = context.session.session.params.model_dump(mode="json")
    name = context.rng.choice(sorted(params))
    params[name] = None
    choice = terms.protocol.model_copy(update={"params": params})
    weaker = terms.model_copy(update={"protocol": choice})
    digest = sha256(canonical_json(weaker)).hexdigest()
    address = context.packet.address.model_copy(update={"agreement": digest})
    return Lie(f"terms without {name!r}", written(context.packet, address=address))


# With another past


def _another_past(context: _Context) -> Lie | None:
    """Leave lines out, tell them twice, or let one say something else."""
    packet, rng = context.packet, context.rng
    lines = list(packet.history)
    at = rng.randrange(len(lines))
    how = rng.choice(["left out", "told twice", "other", "another's"])
    if how == "left out":
        del lines[at]
    elif how == "told twice":
        lines.insert(at, lines[at])
    elif how == "other":
        said = json.loads(lines[at])
        name = rng.choice(sorted(said))
        said[name] = another_value(rng, said[name])
        lines[at] = json.dumps(said, sort_keys=True, separators=(",", ":"))
    else:
        other = honest(context.protocol, context.example, "another")
        known = other.standings[context.slot]
        there = known[min(context.index, len(known) - 1)].task
        lines = list(packets.parse(there).history)
    told = f"line {at} of {len(packet.history)} is {how}"
    return Lie(told, packets.encode_packet(replace(packet, history=lines)))


def _signatures(context: _Context) -> Lie | None:
    """Withhold the signatures of the opening, or one of them, or spoil one."""
    packet, rng = context.packet, context.rng
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
    return Lie(f"signature {at} is {how}", lie)


# Without what belongs to it


def _envelopes(context: _Context) -> Lie | None:
    """Withhold an envelope, hand it out twice, relabel it, or spoil it."""
    packet, rng = context.packet, context.rng
    envelopes = list(packet.envelopes)
    if not envelopes:
        return None
    at = rng.randrange(len(envelopes))
    chosen = envelopes[at]
    how = rng.choice(["withheld", "all withheld", "twice", "relabelled", "spoilt"])
    if how == "withheld":
        del envelopes[at]
    elif how == "all withheld":
        envelopes = []
    elif how == "twice":
        envelopes.append(chosen)
    elif how == "relabelled":
        envelopes[at] = _relabelled(context, chosen)
    else:
        spoilt = bytearray(chosen.sealed)
        spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
        envelopes[at] = Envelope(label=chosen.label, sealed=bytes(spoilt))
    return Lie(f"an envelope is {how}", sealed_in(packet, envelopes))


def _relabelled(context: _Context, envelope: Envelope) -> Envelope:
    label = envelope.label
    changes: list[dict[str, Any]] = [
        {"round": label.round - 1},
        {"attempt": label.attempt + 1},
        {"kind": "group-secret"},
        {"peer": context.slot},
        {"peer": "r9c9"},
        *({"peer": slot} for slot in context.session.standings),
        *({"stage": stage.name} for stage in _stages(context)),
    ]
    changed = label.model_copy(update=context.rng.choice(changes))
    return Envelope(label=changed, sealed=envelope.sealed)


# With other content


def _a_value(context: _Context) -> Lie | None:
    packet, rng = context.packet, context.rng
    values = dict(packet.header.record["values"])
    if not values:
        return None
    name = rng.choice(sorted(values))
    values[name] = another_value(rng, values[name])
    record = packet.header.record | {"values": values}
    return Lie(f"{name!r} differs", written(packet, record=record))


def another_value(rng: random.Random, value: Any) -> Any:
    others: list[Any] = [None, "other", -1, MAX_NUMBER, True, [], {}]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return rng.choice([value + 1, value - 1, 2 * value + 1, 0, *others[:4]])
    if isinstance(value, list) and value:
        without = [v for i, v in enumerate(value) if i != rng.randrange(len(value))]
        return rng.choice([without, value[::-1], [*value, value[0]], value[:1], []])
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value))
        return {**value, key: another_value(rng, value[key])}
    return rng.choice(others)


def _an_array(context: _Context) -> Lie | None:
    packet, rng = context.packet, context.rng
    arrays = {name: array for name, array in packet.arrays.items() if array.size}
    if not arrays:
        return None
    name = rng.choice(sorted(arrays))
    change, made = rng.choice(_OTHER_ARRAYS)
    with np.errstate(over="ignore"):
        altered = made(rng, np.array(arrays[name]))
    encoded = packets.encode_packet(
        replace(packet, arrays={**packet.arrays, name: altered})
    )
    return Lie(f"{name!r}: {change}", encoded)


def _at_random(rng: random.Random, array: Any, step: Any) -> Any:
    flat = array.reshape(-1)
    place = rng.randrange(flat.size)
    if array.dtype.kind == "f":
        flat[place] += float(step)
    else:
        info = np.iinfo(array.dtype)
        wrapped = (int(flat[place]) + step - info.min) % (info.max - info.min + 1)
        flat[place] = wrapped + info.min
    return array


_OTHER_ARRAYS: list[tuple[str, Callable[[random.Random, Any], Any]]] = [
    ("one number by 1", lambda rng, a: _at_random(rng, a, 1)),
    ("one number by -1", lambda rng, a: _at_random(rng, a, -1)),
    ("one number by much", lambda rng, a: _at_random(rng, a, 1 << rng.randrange(62))),
    ("the field's prime added", lambda rng, a: _at_random(rng, a, 2**61 - 1)),
    ("backwards", lambda _, a: a[::-1].copy()),
    ("zeros", lambda _, a: np.zeros_like(a)),
    ("one line less", lambda _, a: a[:-1].copy()),
    ("one line twice", lambda _, a: np.concatenate([a, a[:1]])),
    ("nothing", lambda _, a: a[:0].copy()),
    ("another type", lambda _, a: a.astype("i8" if a.dtype.kind == "f" else "f8")),
    ("an axis more", lambda _, a: a[None].copy()),
]


def _another_answer(context: _Context) -> Lie | None:
    """Ask for an answer of another kind or size."""
    packet, rng = context.packet, context.rng
    expects = packet.header.expects
    if expects is None:
        return None
    dims = dict(expects.dims)
    if dims and rng.random() < 0.7:
        name = rng.choice(sorted(dims))
        dims[name] += rng.choice([-1, 1, 1000])
        changed = expects.model_copy(update={"dims": dims})
    else:
        kinds = [e.answer.kind for s in _stages(context) for e in s.exchanges]
        changed = expects.model_copy(update={"kind": rng.choice(kinds)})
    return Lie("another answer is expected", written(packet, expects=changed))


def _another_kind(context: _Context) -> Lie:
    """Call the record what it is not, or of another version."""
    packet, rng = context.packet, context.rng
    kinds = [record.kind for stage in _stages(context) for record in stage.records]
    changes = [{"kind": rng.choice(kinds)}, {"version": 0}, {"version": 2}]
    change = rng.choice(changes)
    return Lie(f"{change}", written(packet, record=packet.header.record | change))


def _stages(context: _Context) -> Any:
    from clustering_protocols import engine

    return engine.load_session(context.session.agreement)[1]


_WAYS: list[Callable[[_Context], Lie | None]] = [
    *[_another_time] * 3,
    _another_attempt,
    *[_another_session] * 2,
    _another_address,
    _weaker_terms,
    *[_envelopes] * 3,
    *[_a_value] * 3,
    *[_an_array] * 4,
    _another_answer,
    _another_kind,
    *[_another_past] * 2,
    _signatures,
]
