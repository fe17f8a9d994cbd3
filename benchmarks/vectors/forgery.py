"""Tasks and results that only a dishonest analyst would send."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, Concatenate, Final, ParamSpec

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
from clustering_protocols.shared_stages.secrets import ColumnSecret, key_for
from clustering_protocols.simulation import Session

RESULT: Final = "the result"
Edit = Callable[[Packet], Packet]
Change = Callable[[Packet], Packet | bytes]
Refused = Mapping[tuple[str, int, str], Mapping[str, Change]]
"""Changes of one message by their names, for each message and problem.

A message is the kind of a task, or ``RESULT``, and the place of the task among those of
its kind. At the problem a party must stop.
"""
_Options = ParamSpec("_Options")


def edit(
    function: Callable[Concatenate[Packet, _Options], Packet],
) -> Callable[_Options, Edit]:
    """Turn a function of a packet and options into one of options that returns an edit."""

    def bind(*options: _Options.args, **named: _Options.kwargs) -> Edit:
        return lambda packet: function(packet, *options, **named)

    return bind


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

    def refuse(self, *refused: Refused) -> list[Refusal]:
        """Return refusals of changed messages, in their order."""
        sent, refusals = self._sent, []
        for (kind, nth, problem), by_name in chain(*(each.items() for each in refused)):
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

    def seal(self, content: Record) -> Edit:
        """Return an edit that seals other content into the first envelope."""
        own, context = self.recording.slot, self.session.session

        def replace_first(packet: Packet) -> Packet:
            first, *others = packet.envelopes
            label, session = first.label, context.terms.session
            sender = PartyKeys(self.session.entropies[label.peer], session, label.peer)
            bound = Binding(
                transcript=self._transcript(label),
                session=session,
                sender=label.peer,
                receiver=own,
                kind=label.kind,
                **dict(label.when),
            )
            sealed = seal(content.encode(), bound, sender, context.member(own).keys)
            return set_envelopes(packet, [replace(first, sealed=sealed), *others])

        return replace_first

    def falsify(self, name: str, round_: int, by: Mapping[int, int]) -> Edit:
        """Return an edit of a total, whose tag is right: a member helped.

        name: of the sum of all slots; round_: in which they sent their shares.
        by: by how much words are raised, under their places.
        """

        def raise_words(packet: Packet) -> Packet:
            totals = packet.arrays["totals"].copy()
            words, change = totals.reshape(-1), np.zeros(totals.size - 1, np.int64)
            change[list(by)] = list(by.values())
            raised = change.view(np.uint64)
            tag = tags.compute_tag(raised, self._tag_stream(name, round_))
            words[:-1] += raised
            words[-1] = (int(words[-1]) + tag) % P
            return announced(set_arrays(totals=totals))(packet)

        return raise_words

    def _tag_stream(self, name: str, round_: int) -> KeyedStream:
        known = self.session.recall(self.recording.slot, ColumnSecret)
        session = self.session.session
        made = [p for p in self._sent if p.address.round == round_][-1]
        transcript = hash_chain.digest(made.history[-1])
        label = MaskedSum(members=session.slots, name=name, transcript=transcript).label
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


# Edits of the address, the lines and the record


def in_turn(*edits: Edit) -> Edit:
    """Return an edit that makes several, one after the other."""
    return lambda packet: reduce(lambda edited, each: each(edited), edits, packet)


def announced(*edits: Edit) -> Edit:
    """Return edits after which the last line tells all groups of the content."""

    def tell(packet: Packet) -> Packet:
        told = json.loads(packet.history[-1])["told"]
        digest = packets.digest_content(packet.header.record, packet.arrays, packet.own)
        return set_line(told=[digest] * len(told))(packet)

    return in_turn(*edits, tell)


@edit
def set_line(packet: Packet, /, **changes: Any) -> Packet:
    """Return a packet whose last line says something else."""
    said = {**json.loads(packet.history[-1]), **changes}
    previous, number = said.pop("previous"), said.pop("number")
    line = hash_chain.write(None, number, said).replace(hash_chain.START, previous)
    return replace(packet, history=[*packet.history[:-1], line])


@edit
def set_address(packet: Packet, /, **changes: Any) -> Packet:
    """Return a packet of another address."""
    return _set_header(packet, address=packet.address.model_copy(update=changes))


def move(**place: int) -> Edit:
    """Return an edit to another round or attempt, by address and last line."""
    return in_turn(set_line(**place), set_address(**place))


def repeat(packet: Packet, stage: str) -> Packet:
    """Return a packet as the next attempt of its round, in a stage; all were told."""
    changes = {"stage": stage, "attempt": packet.address.attempt + 1}
    last = packet.history[-1]
    said = {**json.loads(last), **changes}
    del said["previous"]
    line = hash_chain.write(last, said.pop("number") + 1, said)
    return set_address(**changes)(replace(packet, history=[*packet.history, line]))


def _set_header(packet: Packet, **changes: Any) -> Packet:
    return replace(packet, header=packet.header.model_copy(update=changes))


@edit
def set_values(packet: Packet, /, **values: Any) -> Packet:
    """Return a packet whose record has other values."""
    record = packet.header.record
    values = {**record["values"], **values}
    return _set_header(packet, record={**record, "values": values})


@edit
def set_kind(packet: Packet, kind: str) -> Packet:
    """Return a packet with an empty record of another kind."""
    record = {**packet.header.record, "kind": kind, "values": {}}
    return replace(_set_header(packet, record=record), arrays={})


@edit
def rename_record(packet: Packet, kind: str, without: str) -> Packet:
    """Return a packet whose record becomes one of another kind, less a value."""
    record = packet.header.record
    values = {k: v for k, v in record["values"].items() if k != without}
    return _set_header(packet, record={**record, "kind": kind, "values": values})


def ask_for(stage: str, kind: str) -> Edit:
    """Return an edit that asks something else; everybody was told of it."""
    line = set_line(stage=stage, asks=kind)
    return announced(set_kind(kind), set_address(stage=stage), line)


# Edits of arrays


@edit
def set_arrays(packet: Packet, /, **arrays: Any) -> Packet:
    """Return a packet whose record has other arrays."""
    return replace(packet, arrays={**packet.arrays, **arrays})


@edit
def set_items(packet: Packet, name: str, place: Any, value: int) -> Packet:
    """Return a packet with other items at a place of an array."""
    array = packet.arrays[name].copy()
    array[place] = value
    return set_arrays(**{name: array})(packet)


@edit
def raise_item(packet: Packet, name: str, place: Any, by: int) -> Packet:
    """Return a packet with an item of an array raised; everybody was told of it."""
    array = packet.arrays[name]
    raised = set_items(name, place, array[place] + np.array(by, array.dtype))
    return announced(raised)(packet)


@edit
def cut_array(packet: Packet, name: str) -> Packet:
    """Return a packet with an array that lacks the last of each row; all were told."""
    array = np.ascontiguousarray(packet.arrays[name][..., :-1])
    return announced(set_arrays(**{name: array}))(packet)


# Edits of envelopes and bytes


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


@edit
def relabel(packet: Packet, /, **changes: Any) -> Packet:
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
