"""A session of an example, played to its end, as what is kept of it."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any
from unittest.mock import patch

import numpy as np
import rfc8785
from support.examples import begun

from clustering_protocols import engine, session_terms, simulation
from clustering_protocols.contract import Example, Outcome
from clustering_protocols.engine import packets
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.records.record import Record
from clustering_protocols.records.rounds import RoundRef
from clustering_protocols.terms.agreements import read_agreement
from tests.protocols.engine.golden.cases import SEED
from tests.protocols.engine.golden.fields import digest, of_array, of_value
from tests.protocols.engine.sealing import Sealed, read_before_sealing

Golden = dict[str, Any]


class Forgetful(simulation.Session):
    """A session whose roles lose all but their bytes before every answer and step.

    Parties also answer in the reverse of the usual order.
    """

    def answering_order(self, slots: Collection[str]) -> Sequence[str]:
        return list(slots)[::-1]

    def ask_party(self, slot: str, task: bytes) -> engine.TaskOutcome:
        self.restart_parties()
        return super().ask_party(slot, task)

    def advance(self, contributions: Mapping[str, bytes]) -> None:
        self.restart_parties()
        super().advance(contributions)

    def outcomes(self) -> dict[str, Outcome]:
        self.restart_parties()
        return super().outcomes()


def recorded(
    example: Example[Any],
    played: Mapping[str, Any] | None = None,
    kind: type[simulation.Session] = simulation.Session,
) -> Golden:
    """Return what is kept of a session: its terms, and by part what follows from them.

    played: the terms to play it under; by default those that are drawn up today.
        Everything secret is bound to the terms: under the same ones, all that follows
        is the same.
    kind: of session, where its roles are to do something else between rounds.
    """
    drawn_up: list[bytes] = []
    draw_up = session_terms.draw_up_terms

    def kept(*given: Any, **more: Any) -> bytes:
        drawn_up.append(draw_up(*given, **more))
        return drawn_up[0] if played is None else rfc8785.dumps(dict(played))

    with (
        patch.object(session_terms, "draw_up_terms", kept),
        read_before_sealing() as sealed,
    ):
        session = begun(example, SEED, kind)
        session.run_to_end()
    now = json.loads(drawn_up[0])
    terms = now if played is None else dict(played)
    return {
        "terms": terms,
        "drawn up otherwise": differences(terms, now),
        "roster": _roster(session.agreement),
        "records": _records(session, sealed),
        "transcript": _transcript(session),
        "results": dict(_results(session)),
    }


def differences(before: Any, now: Any, place: str = "") -> dict[str, Any]:
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return {} if before == now else {place: now}
    found: dict[str, Any] = {}
    for key in sorted(before.keys() | now.keys()):
        where = f"{place}.{key}" if place else key
        found |= differences(before.get(key), now.get(key), where)
    return found


def _roster(agreement: bytes) -> dict[str, Any]:
    members = read_agreement(agreement)[0].roster
    lines = {each.slot: each.model_dump(mode="json") for each in members}
    return {
        slot: {field: of_value(value) for field, value in line.items()}
        for slot, line in lines.items()
    }


def _records(
    session: simulation.Session, sealed: list[Sealed]
) -> dict[str, dict[str, Any]]:
    """Return every record by round, sender, receivers and kind; one told to all once."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for sender, receiver, packet in _messages(session):
        where, record = packet.address, packet.header.record
        fields = _line(record, packet.arrays) | _beside(packet)
        rank = 0 if sender == simulation.ANALYST else 2
        key = (*_when(where), rank, sender, record["kind"], json.dumps(fields))
        found.setdefault(key, []).append(receiver)
    for binding, content in sealed:
        record, arrays = codec.decode(content)
        line = json.dumps(_line(record, arrays))
        inside = (*_when(binding), 1, binding.sender, binding.kind, line)
        found.setdefault(inside, []).append(binding.receiver)
    told: dict[str, dict[str, Any]] = {}
    for key in sorted(found, key=lambda each: each[:6]):
        round_, attempt, stage, _, sender, kind, line = key
        name = f"{round_}.{attempt} {stage}: {kind}, {sender} to {' '.join(found[key])}"
        assert name not in told, f"{name} comes twice"
        told[name] = json.loads(line)
    return told


def _messages(session: simulation.Session) -> Iterator[tuple[str, str, packets.Packet]]:
    for sent in session.sent:
        yield sent.sender, sent.receiver, packets.parse(sent.payload)


def _when(where: RoundRef) -> tuple[int, int, str]:
    return where.round, where.attempt, where.stage


def _line(record: Mapping[str, Any], arrays: codec.Arrays) -> dict[str, Any]:
    line = {name: of_value(value) for name, value in record["values"].items()}
    line |= {name: of_array(arrays[name]) for name in sorted(arrays)}
    return line if record["version"] == 1 else line | {"v": record["version"]}


def _beside(packet: packets.Packet) -> dict[str, Any]:
    """Return what a packet says beside its record: what it expects, and signatures."""
    expects, found = packet.header.expects, {}
    if expects is not None:
        found["expects"] = of_value(expects.model_dump(mode="json"))
    if len(packet.signatures):
        found["signatures"] = of_array(packet.signatures)
    return found


def _transcript(session: simulation.Session) -> list[str]:
    lines: dict[int, str] = {}
    for _, _, packet in _messages(session):
        for line in packet.history:
            lines[json.loads(line)["number"]] = line
    return [
        f"{said.get('round', 0)}.{said.get('attempt', 0)} "
        f"{said.get('asks', 'agreed')} {digest(hash_chain.digest(line).encode())}"
        for line in (lines[number] for number in sorted(lines))
        for said in (json.loads(line),)
    ]


def _results(session: simulation.Session) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is handed out, and what each party and the coordinator read of it."""
    for slot, result in session.final_step.results.items():
        packet = packets.parse(result)
        record = packet.header.record
        yield f"{record['kind']}, to {slot}", _line(record, packet.arrays)
    simulated = session.build_result()
    for slot, outcome in simulated.outcomes.items():
        yield f"read by {slot}", _outcome(outcome)
    figures = [each.values for each in simulated.figures]
    told = {"chosen": simulated.chosen, "figures": of_value(figures)}
    profiles = {"profiles": of_value(session.profiles)} if session.profiles else {}
    yield "read by the coordinator", told | profiles | _summary(simulated.summary)


def _summary(record: Record | None) -> dict[str, Any]:
    return {} if record is None else _line(record.header(), record.arrays)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    values = {each.name: getattr(outcome, each.name) for each in fields(outcome)}
    values["figures"] = [each.values for each in outcome.figures]
    values["profiles"] = [each.model_dump(mode="json") for each in outcome.profiles]
    values["predict"] = outcome.predict is not None
    return {
        name: of_array(value) if isinstance(value, np.ndarray) else of_value(value)
        for name, value in values.items()
        if isinstance(value, np.ndarray | int) or value
    }
