"""What a dishonest party sends instead of its answer, drawn from a seed.

It keeps the keys and the memory of an honest one, and has drawn what an honest one draws;
only what leaves it is something else.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.lies import written

from clustering_protocols import engine
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Envelope, EnvelopeLabel, Packet
from clustering_protocols.records import codec
from clustering_protocols.secrecy import envelopes as sealing
from clustering_protocols.secrecy.keys import party_keys
from tests.protocols.engine.deviations import another_value, sealed_in
from tests.protocols.engine.recorded import Recorded

NOBODY = "r9c9"


class Spoiling(NamedTuple):
    told: str
    packet: Callable[[Packet], bytes] | None = None
    sealed: Callable[[bytes], bytes] | None = None
    keys: bytes | None = None


def lying(session: Recorded, slot: str, how: Spoiling) -> engine.TaskOutcome:
    with sealing_otherwise(session, slot, how):
        answer = session.ask_party(slot, session.open.tasks[slot])
    if how.packet is None:
        return answer
    return answer._replace(contribution=how.packet(packets.parse(answer.contribution)))


@contextmanager
def sealing_otherwise(session: Recorded, slot: str, how: Spoiling) -> Iterator[None]:
    """Let what a party seals be other content, or sealed with other keys."""
    seal = sealing.seal

    def spoiling(content: bytes, bound: Any, own: Any, peer: Any) -> bytes:
        if how.keys is not None:
            own = party_keys(how.keys, session.session.terms.session, slot)
        return seal(how.sealed(content) if how.sealed else content, bound, own, peer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "seal", spoiling)
        yield


def draw(rng: random.Random, session: Recorded, answer: bytes) -> Spoiling | None:
    """Return one way to lie instead of an answer; None where it comes to nothing."""
    own = packets.parse(answer)
    ways = [_another_kind, _another_place, _a_value, _an_array, _an_array, _an_array]
    if own.envelopes:
        ways += [_an_envelope, _an_envelope, _content, _content, _content]
    return rng.choice(ways)(rng, own, session)


# The record


def _another_kind(rng: random.Random, own: Packet, session: Recorded) -> Spoiling:
    del own
    _, stages = engine.load_session(session.agreement)
    kinds = {record.kind for stage in stages for record in stage.records}
    change = rng.choice([{"kind": kind} for kind in sorted(kinds)] + [{"version": 2}])
    return Spoiling(
        f"record {change}", lambda p: written(p, record=p.header.record | change)
    )


def _another_place(rng: random.Random, own: Packet, session: Recorded) -> Spoiling:
    others = [slot for slot in session.session.slots if slot != own.address.slot]
    changes: list[dict[str, Any]] = [
        {"round": own.address.round + 1},
        {"attempt": 2},
        {"session": "other"},
        {"agreement": "0" * 64},
        {"slot": rng.choice([*others, NOBODY])},
    ]
    change = rng.choice(changes)
    return Spoiling(
        f"address {change}",
        lambda p: written(p, address=p.address.model_copy(update=change)),
    )


def _a_value(rng: random.Random, own: Packet, session: Recorded) -> Spoiling | None:
    del session
    values = own.header.record["values"]
    if not values:
        return None
    name = rng.choice(sorted(values))
    other = another_value(rng, values[name])
    if other == values[name]:
        return None

    def change(packet: Packet) -> bytes:
        record = packet.header.record
        return written(
            packet, record=record | {"values": record["values"] | {name: other}}
        )

    return Spoiling(f"{name!r} is {other!r}", change)


def _an_array(rng: random.Random, own: Packet, session: Recorded) -> Spoiling | None:
    del session
    names = sorted(name for name in own.arrays if own.arrays[name].size)
    if not names:
        return None
    name, (told, made) = rng.choice(names), rng.choice(ARRAYS)
    seed = rng.randrange(2**32)

    def change(packet: Packet) -> bytes:
        altered = made(np.random.default_rng(seed), np.array(packet.arrays[name]))
        arrays = {**packet.arrays, name: altered}
        return packets.encode_packet(replace(packet, arrays=arrays))

    return Spoiling(f"{name!r}: {told}", change)


def _filled(value: float, word: int) -> Callable[[Any, Any], Any]:
    def fill(_: Any, array: Any) -> Any:
        number = (
            value if array.dtype.kind == "f" else np.array(word).astype(array.dtype)
        )
        array.reshape(-1)[0] = number
        return array

    return fill


def _all_huge(_: Any, array: Any) -> Any:
    if array.dtype.kind == "f":
        return np.full_like(array, 1e308)
    return np.full_like(array, min(2**62, np.iinfo(array.dtype).max))


def _all_random(rng: Any, array: Any) -> Any:
    if array.dtype.kind == "f":
        return rng.normal(scale=1e3, size=array.shape)
    info = np.iinfo(array.dtype)
    return rng.integers(info.min, info.max, size=array.shape, dtype=array.dtype)


ARRAYS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("one line less", lambda _, a: a[:-1].copy()),
    ("one line more", lambda _, a: np.concatenate([a, a[:1]])),
    ("nothing", lambda _, a: a[:0].copy()),
    ("an axis more", lambda _, a: a[None].copy()),
    ("one column less", lambda _, a: a[..., :-1].copy()),
    ("another type", lambda _, a: a.astype("i8" if a.dtype.kind == "f" else "f8")),
    ("not a number", _filled(np.nan, 2**63)),
    ("infinite", _filled(np.inf, 2**64 - 1)),
    ("huge", _filled(1e308, 2**61 - 1)),
    ("all huge", _all_huge),
    ("negative", _filled(-1e6, 2**64 - 7)),
    ("zeros", lambda _, a: np.zeros_like(a)),
    ("equal lines", lambda _, a: np.broadcast_to(a[:1], a.shape).copy()),
    ("random", _all_random),
]


def huge(value: float) -> tuple[Spoiling, list[str]]:
    """Return how every real number that is sent or sealed is this one, and which were."""
    found: list[str] = []

    def filled(arrays: Any) -> dict[str, Any]:
        real = {name for name, a in arrays.items() if a.dtype.kind == "f" and a.size}
        found.extend(sorted(real))
        return {
            n: np.full_like(a, value) if n in real else a for n, a in arrays.items()
        }

    def sealed(content: bytes) -> bytes:
        header, arrays = codec.decode(content)
        return codec.encode(header, filled(arrays))

    def packet(own: Packet) -> bytes:
        return packets.encode_packet(replace(own, arrays=filled(own.arrays)))

    return Spoiling(f"all {value:g}", packet, sealed), found


# Envelopes


def _an_envelope(rng: random.Random, own: Packet, session: Recorded) -> Spoiling:
    names = [*session.session.slots, NOBODY, "", "analyst"]
    place, bit = rng.randrange(len(own.envelopes)), rng.randrange(8)
    label = own.envelopes[place].label
    peer, kinds = rng.choice(names), [e.label.kind for e in own.envelopes] + ["other"]
    relabelled: list[dict[str, Any]] = [
        {"peer": peer},
        {"peer": own.address.slot},
        {"kind": rng.choice(kinds)},
        {"round": label.round + 1},
        {"attempt": label.attempt + 1},
        {"stage": "other"},
    ]
    changed = rng.choice(relabelled)

    def spoilt(packet: Packet) -> bytes:
        items = list(packet.envelopes)
        sealed = bytearray(items[place].sealed)
        sealed[rng.randrange(len(sealed))] ^= 1 << bit
        items[place] = Envelope(label=items[place].label, sealed=bytes(sealed))
        return sealed_in(packet, items)

    def other_label(packet: Packet) -> bytes:
        items = list(packet.envelopes)
        now: EnvelopeLabel = items[place].label.model_copy(update=changed)
        items[place] = Envelope(label=now, sealed=items[place].sealed)
        return sealed_in(packet, items)

    def without(packet: Packet) -> bytes:
        kept = [e for i, e in enumerate(packet.envelopes) if i != place]
        return sealed_in(packet, kept)

    def twice(packet: Packet) -> bytes:
        return sealed_in(packet, [*packet.envelopes, packet.envelopes[place]])

    return rng.choice(
        [
            Spoiling("an envelope spoilt", spoilt),
            Spoiling(f"an envelope relabelled {changed}", other_label),
            Spoiling("an envelope withheld", without),
            Spoiling("all envelopes withheld", lambda p: sealed_in(p, [])),
            Spoiling("an envelope twice", twice),
            Spoiling("sealed with other keys", keys=b"other" * 7),
        ]
    )


def _content(rng: random.Random, own: Packet, session: Recorded) -> Spoiling:
    del own, session
    how, seed = rng.choice(["bytes", "value", "array", "kind"]), rng.randrange(2**32)
    told, made = rng.choice(ARRAYS)

    def change(content: bytes) -> bytes:
        draws = random.Random(seed)
        header, arrays = codec.decode(content)
        arrays = {name: np.array(array) for name, array in arrays.items()}
        values = dict(header["values"])
        names = sorted(name for name in arrays if arrays[name].size)
        if how == "bytes":
            return content[: draws.randrange(len(content))]
        if how == "kind":
            return codec.encode(header | {"kind": "other"}, arrays)
        if how == "value" and values:
            name = draws.choice(sorted(values))
            values[name] = another_value(draws, values[name])
        elif names:
            name = draws.choice(names)
            arrays[name] = made(np.random.default_rng(seed), arrays[name])
        return codec.encode(header | {"values": values}, arrays)

    return Spoiling(f"sealed {how}, {told}", sealed=change)
