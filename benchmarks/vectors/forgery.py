"""Tasks and results that only a dishonest analyst would send."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.vectors.form import Refusal, VectorCase
from benchmarks.vectors.product import as_base64
from benchmarks.vectors.recordings import Recording
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Envelope, EnvelopeLabel, Packet
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy import tags
from clustering_protocols.secrecy.envelopes import Binding, seal
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.secrecy.prime import P
from clustering_protocols.shared_stages.masked_sums import MaskedSum
from clustering_protocols.shared_stages.secrets import ColumnSecret, RowSecret, key_for
from clustering_protocols.simulation import Session

RESULT: Final = "the result"
Change = Callable[[Packet], Packet | bytes]
Changes = tuple[str, int, str, Mapping[str, Change]]
"""Changes by their names of one message: the kind of a task, or ``RESULT``; the place of
the task among those of its kind; and the problem at which a party must stop."""


class FalsifiedSum(NamedTuple):
    """A sum of all slots: its kind of secret, its name, the round of its shares."""

    secret: type[RowSecret | ColumnSecret]
    name: str
    round: int


@dataclass(frozen=True, kw_only=True)
class Forger:
    """Changes messages of a recorded session."""

    recording: Recording
    session: Session

    @property
    def _sent(self) -> list[Packet]:
        """Return the tasks that the slot was sent, in order."""
        own = self.recording.slot
        return [
            packets.parse(m.payload) for m in self.session.sent if m.receiver == own
        ]

    def refuse(self, *changes: Changes) -> list[Refusal]:
        """Return refusals of changed messages, in their order."""
        sent, refusals = self._sent, []
        for kind, nth, problem, by_name in changes:
            if kind == RESULT:
                place, packet, call, what = len(sent), self.result, "conclude", "result"
            else:
                place = [n for n, p in enumerate(sent) if _kind_of(p) == kind][nth]
                packet, call, what = sent[place], "step", "task"
            for name, change in by_name.items():
                changed = change(packet)
                if isinstance(changed, Packet):
                    changed = packets.encode_packet(changed)
                step = VectorCase(
                    name=name,
                    section="7",
                    call=call,
                    input={what: as_base64(changed)},
                    problem=problem,
                )
                refusals.append(Refusal(name=name, after=1 + place, step=step))
        return refusals

    def task(self, kind: str, nth: int) -> Packet:
        """Return the nth task of a kind as it was sent."""
        return [packet for packet in self._sent if _kind_of(packet) == kind][nth]

    @property
    def result(self) -> Packet:
        """Return the result as it was sent."""
        return packets.parse(self.session.final_step.results[self.recording.slot])

    def seal(self, packet: Packet, place: int, content: Record) -> Packet:
        """Return a packet with another content in an envelope, sealed by its sender."""
        own, context = self.recording.slot, self.session.session
        label, session = packet.envelopes[place].label, context.terms.session
        sender = PartyKeys(self.session.entropies[label.peer], session, label.peer)
        bound = Binding(
            transcript=self._transcript(label),
            session=session,
            sender=label.peer,
            receiver=own,
            kind=label.kind,
            **dict(label.when),
        )
        to = context.member(own).keys
        envelopes = list(packet.envelopes)
        envelopes[place] = Envelope(
            label=label, sealed=seal(content.encode(), bound, sender, to)
        )
        return set_envelopes(packet, envelopes)

    def falsify(
        self, packet: Packet, name: str, of: FalsifiedSum, by: Mapping[int, int]
    ) -> Packet:
        """Return a packet with another total, under a right tag: a member helped.

        name: of the array that holds the total.
        by: by how much words are raised, under their places.
        """
        total = packet.arrays[name].copy()
        words, change = total.reshape(-1), np.zeros(total.size - 1, np.int64)
        change[list(by)] = list(by.values())
        raised = change.view(np.uint64)
        words[:-1] += raised
        words[-1] = (
            int(words[-1]) + tags.compute_tag(raised, self._tag_stream(of))
        ) % P
        return announce(set_arrays(packet, **{name: total}))

    def _tag_stream(self, of: FalsifiedSum) -> KeyedStream:
        known = self.session.memories[self.recording.slot].get(of.secret)
        if known is None:
            raise ValueError("the group has no secret")
        session = self.session.session
        made = [p for p in self._sent if p.address.round == of.round][-1]
        transcript = hash_chain.digest(made.history[-1])
        label = MaskedSum(
            members=session.slots, name=of.name, transcript=transcript
        ).label
        return KeyedStream(key_for(session, known.secret, f"tag/{label}"))

    def _transcript(self, label: EnvelopeLabel) -> str:
        for message in self.session.sent:
            packet = packets.parse(message.payload)
            if packet.history and packet.address.when == label.when:
                return hash_chain.digest(packet.history[-1])
        raise ValueError("nobody was told of this attempt")


def _kind_of(packet: Packet) -> str:
    kind: str = packet.header.record["kind"]
    return kind


def set_line(packet: Packet, **changes: Any) -> Packet:
    """Return a packet whose last line says something else."""
    said = {**json.loads(packet.history[-1]), **changes}
    previous, number = said.pop("previous"), said.pop("number")
    line = hash_chain.write(None, number, said).replace(hash_chain.START, previous)
    return replace(packet, history=[*packet.history[:-1], line])


def repeat(packet: Packet, stage: str) -> Packet:
    """Return a packet as the next attempt of its round, in a stage; all were told."""
    changes = {"stage": stage, "attempt": packet.address.attempt + 1}
    last = packet.history[-1]
    said = {**json.loads(last), **changes}
    del said["previous"]
    line = hash_chain.write(last, said.pop("number") + 1, said)
    return set_address(replace(packet, history=[*packet.history, line]), **changes)


def announce(packet: Packet) -> Packet:
    """Return a packet whose last line tells all groups of its content."""
    told = json.loads(packet.history[-1])["told"]
    digest = packets.digest_content(packet.header.record, packet.arrays, packet.own)
    return set_line(packet, told=[digest] * len(told))


def _set_header(packet: Packet, **changes: Any) -> Packet:
    return replace(packet, header=packet.header.model_copy(update=changes))


def set_values(packet: Packet, **values: Any) -> Packet:
    """Return a packet whose record has other values."""
    record = packet.header.record
    values = {**record["values"], **values}
    return _set_header(packet, record={**record, "values": values})


def set_arrays(packet: Packet, **arrays: Any) -> Packet:
    """Return a packet whose record has other arrays."""
    return replace(packet, arrays={**packet.arrays, **arrays})


def set_kind(packet: Packet, kind: str) -> Packet:
    """Return a packet with an empty record of another kind."""
    record = {**packet.header.record, "kind": kind, "values": {}}
    return replace(_set_header(packet, record=record), arrays={})


def rename_record(packet: Packet, kind: str, without: str) -> Packet:
    """Return a packet whose record becomes one of another kind, less a value."""
    record = packet.header.record
    values = {k: v for k, v in record["values"].items() if k != without}
    return _set_header(packet, record={**record, "kind": kind, "values": values})


def ask_for(packet: Packet, stage: str, kind: str) -> Packet:
    """Return a packet that asks something else; everybody was told of it."""
    asked = set_address(set_kind(packet, kind), stage=stage)
    return announce(set_line(asked, stage=stage, asks=kind))


def raise_item(
    packet: Packet, name: str, place: int | tuple[int, ...], by: int
) -> Packet:
    """Return a packet with an item of an array raised; everybody was told of it."""
    array = packet.arrays[name].copy()
    array[place] += np.array(by, array.dtype)
    return announce(set_arrays(packet, **{name: array}))


def cut_array(packet: Packet, name: str) -> Packet:
    """Return a packet with an array that lacks the last of each row; all were told."""
    array = np.ascontiguousarray(packet.arrays[name][..., :-1])
    return announce(set_arrays(packet, **{name: array}))


def set_address(packet: Packet, **changes: Any) -> Packet:
    """Return a packet of another address."""
    return _set_header(packet, address=packet.address.model_copy(update=changes))


def set_envelopes(packet: Packet, envelopes: Sequence[Envelope]) -> Packet:
    """Return a packet with other envelopes."""
    labels = [envelope.label for envelope in envelopes]
    return replace(_set_header(packet, envelopes=labels), envelopes=envelopes)


def drop_envelopes(packet: Packet) -> Packet:
    """Return a packet without envelopes."""
    return set_envelopes(packet, [])


def flip_bit(packet: Packet) -> Packet:
    """Return a packet with a bit changed in its first envelope."""
    first, *others = packet.envelopes
    sealed = first.sealed[:-1] + bytes([first.sealed[-1] ^ 1])
    return set_envelopes(packet, [replace(first, sealed=sealed), *others])


def relabel(packet: Packet, **changes: Any) -> Packet:
    """Return a packet whose first label says something else."""
    first, *others = packet.envelopes
    named = first.label.model_copy(update=changes)
    return set_envelopes(packet, [replace(first, label=named), *others])


def drop_last_byte(packet: Packet) -> bytes:
    """Return the bytes of a packet without the last one."""
    return packets.encode_packet(packet)[:-1]


def extend_header(packet: Packet) -> bytes:
    """Return the bytes of a packet with an unknown member in its header."""
    header, arrays = codec.decode(packets.encode_packet(packet))
    return codec.encode({**header, "more": 1}, arrays)
