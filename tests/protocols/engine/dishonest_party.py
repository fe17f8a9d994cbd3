"""What a dishonest party sends instead of its answer, drawn from a seed.

It has the keys, the memory and the random numbers of an honest party; only what it
sends is changed.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from clustering_protocols import engine
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Packet
from clustering_protocols.records import codec
from clustering_protocols.secrecy import envelopes as sealing
from clustering_protocols.secrecy.keys import party_keys
from tests.protocols.engine.changed_packets import (
    ARRAYS,
    Changed,
    another_value,
    change_address,
    change_array,
    change_envelopes,
    change_kind,
    change_value,
)
from tests.protocols.engine.recorded import Recorded


class Spoiling(NamedTuple):
    """How a party's answer is changed: as a packet, in what it seals, or in its keys."""

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
    """Let a party seal other content, or seal with other keys."""
    seal = sealing.seal

    def spoiling(content: bytes, bound: Any, own: Any, peer: Any) -> bytes:
        if how.keys is not None:
            own = party_keys(how.keys, session.session.terms.session, slot)
        return seal(how.sealed(content) if how.sealed else content, bound, own, peer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "seal", spoiling)
        yield


def draw(rng: random.Random, session: Recorded, answer: bytes) -> Spoiling | None:
    """Return one way to lie instead of an answer; None if it would change nothing."""
    own, seed = packets.parse(answer), rng.randrange(2**32)
    changes: list[Any] = [
        change_kind,
        change_address,
        change_value,
        *[change_array] * 3,
    ]
    if own.envelopes:
        if rng.random() < 0.4:
            return _change_sealed(rng)
        changes += [change_envelopes] * 2
    change = rng.choice(changes)

    def spoil(packet: Packet) -> Changed | None:
        changed: Changed | None = change(random.Random(seed), packet, session)
        return changed

    drawn = spoil(own)
    if drawn is None or drawn.content == answer:
        return None
    return Spoiling(drawn.told, lambda packet: spoil(packet).content)


def _change_sealed(rng: random.Random) -> Spoiling:
    """Return other content in all envelopes, or other keys with which they are sealed."""
    how = rng.choice(["bytes", "value", "array", "kind", "keys"])
    seed, (told, alter) = rng.randrange(2**32), rng.choice(ARRAYS)
    if how == "keys":
        return Spoiling("sealed with other keys", keys=b"other" * 7)

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
            arrays[name] = alter(draws, arrays[name])
        return codec.encode(header | {"values": values}, arrays)

    return Spoiling(f"sealed {how}, {told}", sealed=change)


def huge(value: float) -> tuple[Spoiling, list[str]]:
    """Return a lie that replaces all real numbers by one, and the names of the arrays."""
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

    def packet(packet: Packet) -> bytes:
        return packets.encode_packet(replace(packet, arrays=filled(packet.arrays)))

    return Spoiling(f"all {value:g}", packet, sealed), found
