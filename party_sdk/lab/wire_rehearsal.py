"""A session with a program at one slot, and this SDK with known entropy at all others."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from clustering_protocols import engine
from clustering_protocols.common.suitability import Kind
from clustering_protocols.contract import Params
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.shared_stages.alignment.identifiers import join
from clustering_protocols.simulation import Session
from clustering_protocols.simulation.agreement import COORDINATOR
from clustering_protocols.terms import roster_entries, schema
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import About, Layout
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.conformance.comparison import find_difference
from party_sdk.conformance.contributions import TOLERANCE, ContributionReader, leeway_of
from party_sdk.conformance.programs import Answer, Program
from party_sdk.tables.linkage.made_people import Cells, make_register

_SESSION: Final = "wards"
_ABOUT: Final = About(title="Größe und Gewicht")


class RehearsedMessage(BaseModel):
    """What a program was sent, and whether its answer was the one that is due.

    wrong: where it differs, and how; empty where it does not.
    """

    round: int
    attempt: int
    stage: str
    asks: str
    due: str
    wrong: str = ""

    @property
    def sentence(self) -> str:
        """Return the same for people."""
        place = f"round {self.round}.{self.attempt}, {self.stage}"
        found = self.wrong or "as expected"
        return f"{place}, {self.asks} → {self.due}: {found}"


def draw_tables(
    layout: Layout,
    n_rows: int,
    n_columns: int,
    seed: int,
    params: Params,
    kind: Kind = "numeric",
) -> dict[str, MatrixSource]:
    """Return a table for each slot: three groups of rows, ids where parties compare some.

    params: where rows are selected, one of each slot's is of somebody nobody else has;
        where repeated people are found, each slot has two of the next one's.
    kind: of data; counts are degrees between 0 and 1 here.
    """
    drawn = np.random.default_rng(seed)
    found = {}
    register = make_register(n_rows * len(layout.slots), np.random.default_rng(seed))
    for place, slot in enumerate(layout.slots):
        people = drawn.permutation(n_rows)
        if params.finds_repeated_people:
            people += place * (n_rows - 2)
        elif params.selects_rows:
            people = np.where(people == n_rows - 1, n_rows + place, people)
        named = [(number, register[number]) for number in people.tolist()]
        ids = _name_people(named, params.match_columns, is_first=place == 0)
        centre = 4.0 * (np.arange(n_rows) % 3)[:, None]
        rows = np.round(drawn.normal(centre, 1.0, (n_rows, n_columns)), 3)
        if kind == "counts":
            rows = 1 / (1 + np.exp(4 - rows))
        names = [f"größe {slot.column}.{number}" for number in range(n_columns)]
        shared = params.finds_repeated_people or len(layout.row_group(slot.row)) > 1
        found[slot.name] = MatrixSource(rows, names, ids if shared else None)
    return found


def describe_tables(
    layout: Layout, tables: Mapping[str, MatrixSource], low: float, high: float
) -> list[Schema]:
    """Return a dictionary of each column group: all columns lie within one range."""
    groups = range(layout.n_column_groups)
    firsts = [tables[layout.column_group(column)[0]] for column in groups]
    return [schema.numbers(table.columns, low, high) for table in firsts]


def _name_people(
    people: Sequence[tuple[int, Cells]], columns: Sequence[str], *, is_first: bool
) -> list[str]:
    """Return ids of people, or their cells in the columns of match keys.

    Of every fourth the first cell is empty, but at the first slot.
    """
    if not columns:
        return [f"P {number:02d} " for number, _ in people]
    found = []
    for number, known in people:
        cells = [known.get(name, f"P {number:02d}") for name in columns]
        if number % 4 == 1 and not is_first:
            cells[0] = ""
        found.append(join(cells))
    return found


@dataclass(frozen=True, kw_only=True)
class WireRehearsal:
    """A session in which a program has a slot.

    tables: of all slots.
    seed: of entropies and terms.
    sections: what else terms say, by name; see
        :class:`~clustering_protocols.terms.terms.SessionRequest`.
    """

    params: Params
    layout: Layout
    tables: Mapping[str, MatrixSource] = field(repr=False)
    slot: str
    seed: int
    sections: Mapping[str, Any] = field(default_factory=dict)

    def begin(self) -> Session:
        """Return the session; its first round is open."""
        return Session(
            *(self.params, self.layout, self.tables, self.seed),
            session=_SESSION,
            about=_ABOUT,
            **self.sections,
        )

    def describe_opening(self, session: Session) -> dict[str, Any]:
        """Return what the slot knows when its session begins: the input of ``init``."""
        context, table = session.session, self.tables[self.slot]
        return {
            "slot": self.slot,
            "entropy": session.entropies[self.slot].hex(),
            "invitation": str(self._invite(session)),
            "terms": context.agreement.terms,
            "agreement": session.agreement.decode(),
            "own": context.member(self.slot).model_dump(mode="json"),
            "table": {
                "columns": list(table.columns),
                "ids": None if table.ids is None else list(table.ids),
                "rows": matrix(table).tolist(),
            },
            "choices": {},
        }

    def _invite(self, session: Session) -> Invitation:
        entropy = session.entropies[COORDINATOR]
        coordinator = Institution.derive(entropy)
        signed = digest(session.session.agreement.terms.encode())
        return Invitation(
            url="https://analyst.example.org",
            session=_SESSION,
            slot=self.slot,
            code="k3-Zq_9x",
            secret=roster_entries.session_secret(entropy, _SESSION),
            terms=signed,
            coordinator=coordinator.key,
            signature=roster_entries.sign_terms(coordinator, signed),
        )

    def find_receivers(self, session: Session) -> dict[str, str]:
        """Return the private X25519 keys (hex) of all other slots."""
        return {
            slot: PartyKeys(entropy, _SESSION, slot).opening.private_bytes_raw().hex()
            for slot, entropy in session.entropies.items()
            if slot not in {self.slot, COORDINATOR}
        }

    def play(self, program: Program) -> Iterator[RehearsedMessage]:
        """Yield what the program was sent, and what it answered; stop at a refusal.

        The session continues with the answers of this SDK, also where others came.
        """
        session, own = self.begin(), self.slot
        reader = ContributionReader(
            agreement=session.session.agreement, receivers=self.find_receivers(session)
        )
        opening = self.describe_opening(session)
        begun = self._judge(None, "init", program.ask("init", opening), {})
        yield begun
        if begun.wrong:
            return
        while not session.is_over:
            if isinstance(session.move, engine.Choosing):
                session.choose(None)
            task = session.tasks().get(own)
            session.turn()
            if task is not None:
                (due,) = [m.payload for m in session.sent if m.sender == own][-1:]
                told = self._answer(program, reader, task, due)
                yield told
                if told.wrong.startswith(".problem"):
                    return
        result = session.final_step.results[own]
        found = program.ask("conclude", {"result": _text(result)})
        labels = session.outcomes()[own].labels.tolist()
        yield self._judge(packets.read(result), "labels", found, {"labels": labels})

    def _answer(
        self, program: Program, reader: ContributionReader, task: bytes, due: bytes
    ) -> RehearsedMessage:
        asked, said = packets.read(task), packets.read(due).header.record
        kind = said["kind"]
        answer = program.ask("step", {"task": _text(task)})
        if "output" not in answer:
            return self._judge(asked, kind, answer, {})
        found = base64.b64decode(str(answer["output"].get("contribution", "")))
        wrong = reader.find_difference(
            task,
            due,
            found,
            tolerance=TOLERANCE,
            **leeway_of(said)._asdict(),
        )
        return _message(asked, kind, wrong)

    @staticmethod
    def _judge(
        packet: packets.Packet | None,
        due: str,
        answer: Answer,
        output: Mapping[str, Any],
    ) -> RehearsedMessage:
        if "output" not in answer:
            return _message(packet, due, f".problem: {answer} came")
        return _message(packet, due, find_difference(output, answer["output"]))


def _message(packet: packets.Packet | None, due: str, wrong: str) -> RehearsedMessage:
    if packet is None:
        return RehearsedMessage(
            round=0, attempt=0, stage="beginning", asks=due, due="nothing", wrong=wrong
        )
    here, record = packet.address, packet.header.record
    return RehearsedMessage(
        round=here.round,
        attempt=here.attempt,
        stage=here.stage,
        asks=str(record["kind"]),
        due=due,
        wrong=wrong,
    )


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
