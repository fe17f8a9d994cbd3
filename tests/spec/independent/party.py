"""Sections 7, 8 and 13: a party of one session, from its first task to its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from . import (
    dc,
    dummy,
    fccm,
    filling,
    kinds,
    llf,
    llf_columns,
    omnifc,
    order,
    pqmds,
    profiles,
    records,
    roster,
    runs,
)
from .common import narrow
from .derivations import Refusal, lp, open_envelope, seal_envelope
from .kinds import Kind, Record
from .order import Exchange, Journal, Memory, Reply, Role, Stage, View
from .session import Session, open_session, read_terms

_FINAL: Final = {
    "task-refused",
    "envelope-refused",
    "protocol-failed",
    "malformed",
    "invalid-array",
    "agreement-mismatch",
    "equivocation",
}
_PROTOCOLS: Final = {
    "dummy": dummy,
    "dc": dc,
    "llf": llf,
    "fccm": fccm,
    "omnifc": omnifc,
    "pqmds": pqmds,
}
_QUORUMS: Final = {"omnifc": omnifc.quorum, "llf": llf.quorum}
"""Section 7: how many have to sign the closing, where not all have to."""
_RESULTS_TO: Final = {"llf": llf.results_to}
"""Section 12: to whom results go, where the terms say it."""
_SPLIT_COLUMNS: Final = {"llf": llf_columns}
"""Section 12: protocols that are another one where columns are split."""
_VERSIONS: Final = {name: each.VERSION for name, each in _PROTOCOLS.items()}
_OUTSIDE: Final = -1
"""Section 11, ids and intersection: the label of a row that takes no part."""
_SIGNING: Final[Mapping[str, Kind]] = {
    "sign": Kind(),
    "signed": Kind({"signature": "string"}),
}


def _find_protocol(terms: Mapping[str, Any]) -> Any:
    """Section 12: the protocol of a session."""
    name, slots = terms["protocol"]["name"], terms["layout"]["slots"]
    split = len({each["column"] for each in slots}) > 1
    return (split and _SPLIT_COLUMNS.get(name)) or _PROTOCOLS[name]


class _Signer(Role):
    """Section 7: opening and closing."""

    def reply(self, view: View, task: Record) -> Reply:
        """Section 7: sign the transcript, in a session of several runs after a look."""
        told = runs.check_conclusion(view, task)
        _, key = view.session.keys()
        signature = roster.sign_transcript(key, view.stage, view.transcript)
        return Reply(Record("signed", {"signature": signature}), remember=told)


def _signing(name: str, *, all_asked: bool = True) -> Stage:
    """Section 7: opening or closing."""
    return Stage(name, (Exchange("sign", "signed", int(all_asked)),), _Signer())


class Party:
    """Section 13: a party of one session."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Section 14: init."""
        terms = read_terms(given["terms"], _VERSIONS)
        protocol = _find_protocol(terms)
        self._session = open_session(given, terms, aligned=protocol.ALIGNED)
        own = runs.repeat_stages(self._session, protocol.stages)
        self._own = own = filling.with_filling(self._session, [*own])
        released = profiles.stage(self._session, protocol.RESULTS_TO, self._label)
        self._quorum = self._count_signatures()
        everybody = self._quorum == len(self._session.slots)
        signed = _signing("closing", all_asked=everybody)
        closing = runs.closing(signed, self._session)
        self._stages = (_signing("opening"), *own, *released, closing)
        self._kinds = {
            **_SIGNING,
            **runs.KINDS,
            **profiles.KINDS,
            **filling.KINDS,
            **protocol.KINDS,
        }
        self._conclude, self._results = protocol.conclude, protocol.RESULTS
        self._label_left_out = getattr(protocol, "label_left_out", None)
        find = _RESULTS_TO.get(terms["protocol"]["name"])
        self._results_to = find(self._session) if find else protocol.RESULTS_TO
        self._journal = Journal()
        self._before: Memory = {}
        self._memory: Memory = {}
        self._last: tuple[order.When, bytes, bytes] = ((0, 0), b"", b"")
        self._stopped = False

    def _count_signatures(self) -> int:
        """Section 7: how many signatures of the closing suffice."""
        find = _QUORUMS.get(self._session.terms["protocol"]["name"])
        return find(self._session) if find else len(self._session.slots)

    def step(self, task: bytes) -> bytes:
        """Section 14: the contribution to a task."""
        return self._unless_stopped(lambda: self._answer(task))

    def conclude(self, result: bytes) -> list[int]:
        """Section 14: the labels of a result, in the order of the table."""
        return self._unless_stopped(lambda: self._read_result(result))

    def _unless_stopped(self, call: Any) -> Any:
        """Section 7, stopping: what has stopped answers nothing."""
        if self._stopped:
            raise Refusal("task-refused")
        try:
            return call()
        except Refusal as refused:
            self._stopped = refused.problem in _FINAL
            raise

    def _read(self, content: bytes) -> tuple[records.Packet, Record]:
        """Sections 3 and 7: a packet of this session, and its record."""
        packet, session = records.read_packet(content), self._session
        address = packet.address
        here = (address["session"], address["agreement"], address["slot"])
        if here != (session.id, session.agreement, session.slot):
            raise Refusal("agreement-mismatch")
        known = {**self._kinds, **self._stage(address["stage"]).kinds}
        return packet, kinds.check_record(known, packet.record, packet.arrays)

    def _answer(self, task: bytes) -> bytes:
        """Section 7: answer a task that may come."""
        packet, record = self._read(task)
        when = (packet.address["round"], packet.address["attempt"])
        if when == self._last[0]:
            if task != self._last[1]:
                raise Refusal("equivocation")
            return self._last[2]
        stage = self._stage(packet.address["stage"])
        stage.exchange(packet.kind)
        repeats = when[0] == self._journal.when[0]
        before = self._before if repeats else self._memory
        journal = self._journal.follow(self._session, packet.lines)
        journal = order.admit(self._session, self._stages, journal, packet)
        memory = self._receive(journal, packet, before)
        reply = stage.role.reply(self._view(stage, journal, when, memory), record)
        contribution = self._write(packet, journal, when, reply)
        self._before, self._journal = before, journal
        remembered = runs.write_memory(stage.run, reply.remember)
        self._memory = {**memory, **remembered, "awaited": reply.awaits}
        self._last = (when, task, contribution)
        return contribution

    def _stage(self, name: str) -> Stage:
        """Section 7: a stage of this session."""
        for stage in self._stages:
            if stage.name == name:
                return stage
        raise Refusal("malformed")

    def _view(
        self, stage: Stage, journal: Journal, when: order.When, memory: Memory
    ) -> View:
        """Section 13: what the party knows in an attempt."""
        session, known = (
            self._session.of_run(stage.run),
            runs.read_memory(stage.run, memory),
        )
        here = (session, stage.name, when, journal.transcripts, known)
        view = View(*here, stage.run, journal.rounds)
        if "fillings" in memory:
            view = replace(view, session=session.prepare(memory["fillings"]))
        chosen = memory.get("selection")
        return narrow(view, chosen["rows"], chosen["counts"]) if chosen else view

    def _receive(
        self, journal: Journal, packet: records.Packet, memory: Memory
    ) -> Memory:
        """Section 7, envelopes of a round: open them; their stages keep them."""
        order.check_envelopes(journal, packet, memory.get("awaited", []))
        rounds: dict[int, list[tuple[dict[str, Any], bytes]]] = {}
        labels = packet.header["envelopes"]
        for label, sealed in zip(labels, packet.sealed, strict=True):
            rounds.setdefault(label["round"], []).append((label, sealed))
        for round_ in sorted(rounds):
            first = rounds[round_][0][0]
            stage = next((s for s in self._stages if s.name == first["stage"]), None)
            if stage is None:
                raise Refusal("envelope-refused")
            came = [
                (label["peer"], self._open(stage, journal, label, sealed))
                for label, sealed in rounds[round_]
            ]
            when = (first["round"], first["attempt"])
            view = self._view(stage, journal, when, memory)
            received = runs.write_memory(stage.run, stage.role.receive(view, came))
            memory = {**memory, **received}
        return memory

    def _info(
        self, label: Mapping[str, Any], transcript: str, sender: str, receiver: str
    ) -> bytes:
        """Section 8: what an envelope is bound to."""
        when = (label["stage"], label["round"], label["attempt"])
        here = ("coterie/envelope/3", transcript, self._session.id, *when)
        return lp(*here, sender, receiver, label["kind"])

    def _open(
        self, stage: Stage, journal: Journal, label: dict[str, Any], sealed: bytes
    ) -> Record:
        """Section 8: open an envelope."""
        session = self._session
        if label["kind"] not in stage.envelopes or label["peer"] not in session.slots:
            raise Refusal("envelope-refused")
        transcript = journal.transcripts[label["round"], label["attempt"]]
        info = self._info(label, transcript, label["peer"], session.slot)
        key = session.roster[label["peer"]]["keys"]["ed25519"]
        sender = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        own, _ = session.keys()
        content = open_envelope(sealed, info, own, sender)
        found = kinds.check_record(self._kinds, *records.read(content))
        if found.kind != label["kind"]:
            raise Refusal("malformed")
        return found

    def _write(
        self,
        packet: records.Packet,
        journal: Journal,
        when: order.When,
        reply: Reply,
    ) -> bytes:
        """Sections 3 and 8: the bytes of a contribution."""
        session, sent = self._session, []
        _, key = session.keys()
        for peer, record in reply.envelopes:
            label = {**packet.address, "kind": record.kind}
            info = self._info(label, journal.transcripts[when], session.slot, peer)
            public = bytes.fromhex(session.roster[peer]["keys"]["x25519"])
            receiver = X25519PublicKey.from_public_bytes(public)
            sealed = seal_envelope(record.write(), info, key, receiver)
            sent.append((peer, record.kind, sealed))
        return records.write_packet(packet.address, reply.record.write(), sent)

    def _label(self, view: View, result: Record, chosen: int) -> Any:
        """Section 11, profiles: the labels of a result that comes before the end."""
        header = {
            "kind": result.kind,
            "version": result.version,
            "values": result.values,
        }
        found = kinds.check_record(self._kinds, header, result.arrays)
        if found.kind not in self._results:
            raise Refusal("malformed")
        last = runs.last_stage(self._own, chosen)
        known = runs.read_memory(last.run, view.memory)
        session = view.session.of_run(last.run)
        return self._conclude(
            View(session, last.name, view.when, view.transcripts, known), found
        )

    def _find_left_out(self) -> Session | None:
        """Section 11, repeated people: rows that are left out, and find labels later."""
        said = self._session.terms["protocol"].get("params", {}).get("alignment", {})
        if said.get("repeated_people") != "left-out" or self._label_left_out is None:
            return None
        session = self._session
        if "fillings" in self._memory:
            session = session.prepare(self._memory["fillings"])
        chosen = self._memory["selection"]
        left = set(range(len(session.rows))) - set(chosen["rows"])
        return session.select(sorted(left), chosen["counts"]) if left else None

    def _read_result(self, result: bytes) -> list[int]:
        """Section 7, results: the labels of a result that may come."""
        packet, record = self._read(result)
        if record.kind not in self._results:
            raise Refusal("malformed")
        session = self._session
        journal = self._journal.follow(session, packet.lines)
        order.check_skipped(self._stages, journal, (len(self._stages) - 1, 1))
        signed = (session, "closing", journal.last, packet)
        order.check_signed(*signed, self._quorum)
        told = runs.told_of_results(session, order.read_entry(packet)["told"])
        order.check_told(session, told, self._results_to, packet)
        when = (packet.address["round"], packet.address["attempt"])
        profiles.check_assigned(self._memory, packet.content_digest)
        last = runs.last_stage(self._own, self._memory.get("chosen", 0))
        view = self._view(last, journal, when, self._memory)
        found = self._conclude(view, record)
        sizes = record.arrays.get("cluster_sizes")
        if sizes is not None and (found >= len(sizes)).any():
            raise Refusal("protocol-failed")
        labels = np.full(session.n_table, _OUTSIDE)
        labels[view.session.arrived] = found
        left = self._find_left_out()
        if left is not None:
            labels[left.arrived] = self._label_left_out(view, record, left)
        return [int(label) for label in labels]
