"""Changes to a packet that a dishonest analyst or party makes, drawn from a seed."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from support.lies import written

from clustering_protocols import engine
from clustering_protocols.contract import Stage
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Envelope, Packet
from tests.protocols.engine.recorded import Recorded

MAX_NUMBER = 2**53 - 1  # the largest that canonical JSON writes
NOBODY = "r9c9"


class Changed(NamedTuple):
    """The bytes of a changed packet; ``told`` describes the change in a report."""

    told: str
    content: bytes


def stages_of(session: Recorded) -> tuple[Stage, ...]:
    return engine.load_session(session.agreement)[1]


def change_address(rng: random.Random, packet: Packet, session: Recorded) -> Changed:
    address = packet.address
    values: dict[str, list[Any]] = {
        "session": ["other", ""],
        "agreement": ["0" * 64, ""],
        "slot": [*session.standings, NOBODY, ""],
        "stage": [*(stage.name for stage in stages_of(session)), "other"],
        "round": [0, address.round - 1, address.round + 1, 2**31],
        "attempt": [0, 2, 3, 5, 6, 2**31],
    }
    part = rng.choice(list(values))
    now = getattr(address, part)
    new = rng.choice([value for value in values[part] if value != now])
    changed = address.model_copy(update={part: new})
    return Changed(f"{part} is {new!r}", written(packet, address=changed))


def change_kind(rng: random.Random, packet: Packet, session: Recorded) -> Changed:
    """Call the record what it is not, or of another version."""
    kinds = {record.kind for stage in stages_of(session) for record in stage.records}
    kind = {"kind": rng.choice(sorted(kinds))}
    change = rng.choice([kind, {"version": 0}, {"version": 2}])
    return Changed(f"{change}", written(packet, record=packet.header.record | change))


def change_value(
    rng: random.Random, packet: Packet, session: Recorded
) -> Changed | None:
    del session
    values = dict(packet.header.record["values"])
    if not values:
        return None
    name = rng.choice(sorted(values))
    values[name] = another_value(rng, values[name])
    record = packet.header.record | {"values": values}
    return Changed(f"{name!r} is {values[name]!r}", written(packet, record=record))


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


def change_array(
    rng: random.Random, packet: Packet, session: Recorded
) -> Changed | None:
    del session
    names = sorted(name for name, array in packet.arrays.items() if array.size)
    if not names:
        return None
    name, (told, alter) = rng.choice(names), rng.choice(ARRAYS)
    with np.errstate(over="ignore"):
        altered = alter(rng, np.array(packet.arrays[name]))
    arrays = {**packet.arrays, name: altered}
    content = packets.encode_packet(replace(packet, arrays=arrays))
    return Changed(f"{name!r}: {told}", content)


def _add_at_random(rng: random.Random, array: Any, step: Any) -> Any:
    flat = array.reshape(-1)
    place = rng.randrange(flat.size)
    if array.dtype.kind == "f":
        flat[place] += float(step)
    else:
        info = np.iinfo(array.dtype)
        wrapped = (int(flat[place]) + step - info.min) % (info.max - info.min + 1)
        flat[place] = wrapped + info.min
    return array


def _set_first(real: float, word: int) -> Callable[[Any, Any], Any]:
    def set_first(_: Any, array: Any) -> Any:
        is_real = array.dtype.kind == "f"
        array.reshape(-1)[0] = real if is_real else np.array(word).astype(array.dtype)
        return array

    return set_first


def _all_huge(_: Any, array: Any) -> Any:
    if array.dtype.kind == "f":
        return np.full_like(array, 1e308)
    return np.full_like(array, min(2**62, np.iinfo(array.dtype).max))


def _all_random(rng: random.Random, array: Any) -> Any:
    draws = np.random.default_rng(rng.randrange(2**32))
    if array.dtype.kind == "f":
        return draws.normal(scale=1e3, size=array.shape)
    info = np.iinfo(array.dtype)
    return draws.integers(info.min, info.max, size=array.shape, dtype=array.dtype)


ARRAYS: list[tuple[str, Callable[[random.Random, Any], Any]]] = [
    ("one number by 1", lambda rng, a: _add_at_random(rng, a, 1)),
    ("one number by -1", lambda rng, a: _add_at_random(rng, a, -1)),
    ("one number by much", lambda r, a: _add_at_random(r, a, 1 << r.randrange(62))),
    ("the field's prime added", lambda rng, a: _add_at_random(rng, a, 2**61 - 1)),
    ("backwards", lambda _, a: a[::-1].copy()),
    ("zeros", lambda _, a: np.zeros_like(a)),
    ("one line less", lambda _, a: a[:-1].copy()),
    ("one line twice", lambda _, a: np.concatenate([a, a[:1]])),
    ("nothing", lambda _, a: a[:0].copy()),
    ("another type", lambda _, a: a.astype("i8" if a.dtype.kind == "f" else "f8")),
    ("an axis more", lambda _, a: a[None].copy()),
    ("one column less", lambda _, a: a[..., :-1].copy()),
    ("equal lines", lambda _, a: np.broadcast_to(a[:1], a.shape).copy()),
    ("not a number", _set_first(np.nan, 2**63)),
    ("infinite", _set_first(np.inf, 2**64 - 1)),
    ("huge", _set_first(1e308, 2**61 - 1)),
    ("negative", _set_first(-1e6, 2**64 - 7)),
    ("all huge", _all_huge),
    ("random", _all_random),
]


def change_envelopes(
    rng: random.Random, packet: Packet, session: Recorded
) -> Changed | None:
    """Withhold an envelope, send it twice, relabel it, or spoil it."""
    envelopes = list(packet.envelopes)
    if not envelopes:
        return None
    place = rng.randrange(len(envelopes))
    label, sealed = envelopes[place].label, bytearray(envelopes[place].sealed)
    sealed[rng.randrange(len(sealed))] ^= 1 << rng.randrange(8)
    names = [*session.standings, packet.address.slot, NOBODY, "", "analyst"]
    kinds = [*(e.label.kind for e in envelopes), "group-secret", "other"]
    stages = [*(stage.name for stage in stages_of(session)), "other"]
    change: dict[str, Any] = rng.choice(
        [
            {"round": label.round + rng.choice([-1, 1])},
            {"attempt": label.attempt + 1},
            {"kind": rng.choice(kinds)},
            {"peer": rng.choice(names)},
            {"stage": rng.choice(stages)},
        ]
    )
    relabelled = Envelope(
        label=label.model_copy(update=change), sealed=envelopes[place].sealed
    )
    spoilt = Envelope(label=label, sealed=bytes(sealed))
    before, after = envelopes[:place], envelopes[place + 1 :]
    told, changed = rng.choice(
        [
            ("an envelope withheld", [*before, *after]),
            ("all envelopes withheld", []),
            ("an envelope twice", [*envelopes, envelopes[place]]),
            (f"an envelope relabelled {change}", [*before, relabelled, *after]),
            ("an envelope spoilt", [*before, spoilt, *after]),
        ]
    )
    header = packet.header.model_copy(
        update={"envelopes": [envelope.label for envelope in changed]}
    )
    packet = replace(packet, header=header, envelopes=changed)
    return Changed(told, packets.encode_packet(packet))
