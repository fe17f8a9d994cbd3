"""Messages with some of their content replaced: what a liar would send.

A liar is consistent: what it says that everybody was told fits the lie.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from clustering_protocols import engine
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.contract import Stage
from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.engine.packets import Packet
from clustering_protocols.engine.session_state import AnalystState
from clustering_protocols.records import hash_chain
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.records.rounds import RoundRef
from clustering_protocols.secrecy.keys import party_keys
from clustering_protocols.simulation import Session

Change = Callable[[Any], Mapping[str, Any]]


def written(packet: Packet, **header: Any) -> bytes:
    """Return a packet with parts of its header replaced, whatever they say."""
    changed = packet.header.model_copy(update=header)
    return packets.encode_packet(replace(packet, header=changed))


def alter(agreement: bytes, message: bytes, change: Change) -> bytes:
    _, stages = engine.load_session(agreement)
    packet = packets.parse(message)
    record = packet.read(_stage_of(stages, packet).records)
    lie = record.replace(**change(record))
    header = packet.header.model_copy(update={"record": lie.header()})
    changed = replace(packet, header=header, arrays=lie.arrays)
    if packet.history:
        changed = replace(changed, history=_lines(agreement, changed, packet.history))
    return packets.encode_packet(changed)


def altered(session: Session, slot: str, change: Change) -> bytes:
    """Return a slot's open task with fields of its record replaced by the analyst."""
    return alter(session.agreement, session.open.tasks[slot], change)


def tell(session: Session, change: Change) -> None:
    """Let the analyst tell all the same lie in the open round, and continue with it."""
    tasks = {slot: altered(session, slot, change) for slot in session.open.tasks}
    state = AnalystState.decode(session.open.state)
    lines = state.history.tobytes().decode().split("\n")
    last = packets.parse(next(iter(tasks.values()))).history[-1]
    text = "\n".join([*lines[:-1], last]).encode()
    lie = state.model_copy(update={"history": np.frombuffer(text, np.uint8)})
    session.move = replace(session.open, tasks=tasks, state=lie.encode())


def move_packet(agreement: bytes, task: bytes, current: bytes) -> bytes:
    """Return an earlier packet, envelopes and all, in the place of the current task."""
    then, present = packets.parse(task), packets.parse(current)
    at = present.address
    lie = _readdressed(then, round=at.round, attempt=at.attempt)
    lie = replace(lie, signatures=present.signatures)
    lines = _lines(agreement, lie, present.history)
    return packets.encode_packet(replace(lie, history=lines))


def _readdressed(packet: Packet, **changes: Any) -> Packet:
    address = packet.address.model_copy(update=changes)
    header = packet.header.model_copy(update={"address": address})
    return replace(packet, header=header)


def again(agreement: bytes, task: bytes, attempt: int, **address: Any) -> bytes:
    """Return a task as a later attempt of its round; all attempts between are void.

    address: further parts of the address that differ, such as the stage.
    """
    packet = packets.parse(task)
    lines = list(packet.history)
    for number in range(packet.address.attempt + 1, attempt + 1):
        packet = _readdressed(packet, attempt=number, **address)
        lines.append(_line(agreement, packet, lines[-1]))
    return packets.encode_packet(replace(packet, history=lines))


def fit_past(agreement: bytes, lie: bytes, current: bytes) -> bytes:
    """Return a lie with a past that fits it, in the place of the current task.

    A lie that is no task of this session or round, and so fits no past, stays as it is.
    """
    try:
        packet, present = packets.parse(lie), packets.parse(current)
        first = present.address.attempt
        if (
            packet.address.round != present.address.round
            or packet.address.attempt < first
        ):
            return lie
        lines = list(present.history)
        if packet.address.attempt == first:
            lines = _lines(agreement, packet, lines)
        for attempt in range(first + 1, min(packet.address.attempt, 9) + 1):
            void = _readdressed(packet, attempt=attempt)
            lines.append(_line(agreement, void, lines[-1]))
        return packets.encode_packet(replace(packet, history=lines))
    except (CoterieError, StopIteration, ValueError, TypeError):
        return lie


def signed(session: Session, result: bytes) -> bytes:
    """Return a result as if everybody had signed it."""
    packet = packets.parse(result)
    told = hash_chain.digest(packet.history[-1])
    rows = [
        _signature(session, slot, packet.address.stage, told)
        for slot in session.session.slots
    ]
    return packets.encode_packet(replace(packet, signatures=np.stack(rows)))


def _signature(session: Session, slot: str, stage: str, told: str) -> ByteArray:
    name = session.session.terms.session
    keys = party_keys(session.entropies[slot], name, slot)
    made = keys.signing.sign(signatures.bytes_to_sign(stage, told))
    return np.frombuffer(made, np.uint8)


def _lines(agreement: bytes, packet: Packet, lines: Sequence[str]) -> list[str]:
    """Return the lines of a party's history with the last one telling this packet."""
    *before, last = lines
    said = transcript.parse_last_entry([last])
    said = said.model_copy(update=_said(agreement, packet, said.left_out))
    return [*before, _write_line(said.model_dump())]


def _line(agreement: bytes, packet: Packet, before: str) -> str:
    number = transcript.line_number(before) + 1
    return hash_chain.write(before, number, _said(agreement, packet, ()))


def _write_line(fields: dict[str, Any]) -> str:
    number, previous = fields.pop("number"), fields.pop("previous")
    line = hash_chain.write(None, number, fields)
    return line.replace(f'"previous":"{hash_chain.START}"', f'"previous":"{previous}"')


def _said(agreement: bytes, packet: Packet, left_out: Sequence[str]) -> dict[str, Any]:
    session, stages = engine.load_session(agreement)
    stage, kind = _stage_of(stages, packet), packet.header.record["kind"]
    is_task = kind in {task.kind for task in stage.tasks}
    audience = stage.exchange_of(kind).audience if is_task else stage.results_to
    digest = packets.parse(packets.encode_packet(packet)).content_digest
    asks = kind if is_task else stage.tasks[-1].kind
    told = (digest,) * len(session.layout.audience_groups(audience))
    told = told if is_task else ("", *told)  # a digest of the task comes first
    return {**_when(packet), "asks": asks, "left_out": tuple(left_out), "told": told}


def _when(packet: Packet) -> dict[str, Any]:
    return RoundRef(**dict(packet.address.when)).model_dump()


def _stage_of(stages: Sequence[Stage], packet: Packet) -> Stage:
    return next(s for s in stages if s.name == packet.address.stage)
