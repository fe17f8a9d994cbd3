"""A session with a program at one slot, and this SDK with known entropy at all others."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from pydantic import BaseModel

from clustering_protocols import engine
from clustering_protocols.common.suitability import Kind
from clustering_protocols.contract import Params
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.shared_stages.alignment.identifiers import join
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.simulation import Session
from clustering_protocols.simulation.agreement import COORDINATOR
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.preparation import Missing, Preparation, Treatment
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import About, Layout
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.conformance.comparison import find_difference
from party_sdk.conformance.contributions import TOLERANCE, ContributionReader, leeway_of
from party_sdk.conformance.programs import Answer, Program
from party_sdk.tables.linkage_trials import Cells, make_register

_SESSION: Final = "wards"
_ABOUT: Final = About(title="Größe und Gewicht")
_DESCRIBED: Final = {
    "stadium": Field(
        name="stadium", role="describe", type="string", categories=("I", "II", "III")
    ),
    "beginn": Field(name="beginn", role="describe", type="date"),
}


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
    *,
    described: bool = False,
) -> dict[str, MatrixSource]:
    """Return a table for each slot: three groups of rows, ids where parties compare some.

    params: where rows are selected, one of each slot's is of somebody nobody else has.
    kind: of data; counts are degrees between 0 and 1 here.
    described: whether there are two more columns, which profiles alone show.
    """
    drawn = np.random.default_rng(seed)
    drawn_beside = np.random.default_rng(seed)
    in_order = (
        isinstance(params, AlignedParams) and params.alignment.method == "position"
    )
    found = {}
    register = make_register(n_rows * len(layout.slots), np.random.default_rng(seed))
    for place, slot in enumerate(layout.slots):
        people = np.arange(n_rows) if in_order else drawn.permutation(n_rows)
        if params.selects_rows:
            people = np.where(people == n_rows - 1, n_rows + place, people)
        named = [(number, register[number]) for number in people.tolist()]
        ids = _name_people(named, params.match_columns, is_first=place == 0)
        centre = 4.0 * (np.arange(n_rows) % 3)[:, None]
        rows = np.round(drawn.normal(centre, 1.0, (n_rows, n_columns)), 3)
        if kind == "counts":
            rows = 1 / (1 + np.exp(4 - rows))
        names = [f"größe {slot.column}.{number}" for number in range(n_columns)]
        if described:
            rows = np.column_stack([rows, _describe_rows(rows, drawn_beside)])
            names += _DESCRIBED
        shared = len(layout.row_group(slot.row)) > 1
        found[slot.name] = MatrixSource(
            rows, names, ids if shared else None, gaps=described
        )
    return found


def describe_tables(
    layout: Layout,
    tables: Mapping[str, MatrixSource],
    ranges: tuple[float, float] | None = None,
) -> list[Schema]:
    """Return a dictionary of each column group.

    ranges: least and greatest value of what is clustered; said where they are given.
    """
    low, high = ranges or (None, None)
    bounds = Constraints(minimum=low, maximum=high)
    firsts = [tables[group[0]] for group in layout.column_groups]
    return [
        Schema(
            fields=tuple(
                _DESCRIBED.get(name) or Field(name=name, constraints=bounds)
                for name in table.columns
            )
        )
        for table in firsts
    ]


def _describe_rows(rows: FloatArray, drawn: np.random.Generator) -> FloatArray:
    """Return levels, of which one is rare, and dates (n, 2), both with gaps."""
    n = len(rows)
    levels = drawn.choice([0.0, 1.0, 2.0, np.nan], n, p=[0.5, 0.35, 0.05, 0.1])
    days = np.round(drawn.normal(20_000 + 90 * (rows[:, 0] > 2), 30))
    days[drawn.random(n) < 0.1] = np.nan
    return np.column_stack([levels, days])


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


Heard: TypeAlias = Callable[[bytes, engine.TaskOutcome], engine.TaskOutcome]


class RehearsedSession(Session):
    """A session of this SDK in which somebody may answer in its place.

    heard: for each slot, what becomes of a task's answer before it is sent.
    absences: by round, the slots that do not come for their task.
    """

    heard: Mapping[str, Heard] = MappingProxyType({})
    absences: Mapping[int, Collection[str]] = MappingProxyType({})

    def ask(self, slot: str, task: bytes) -> engine.TaskOutcome:
        """Return the answer to a task."""
        due = super().ask(slot, task)
        return self.heard[slot](task, due) if slot in self.heard else due

    def turn(
        self,
        absent: Collection[str] = (),
        told: Mapping[str, bytes] | None = None,
    ) -> None:
        """Let the parties that come answer the open round."""
        super().turn([*absent, *self.absences.get(self.open.round, ())], told)


@dataclass(frozen=True, kw_only=True)
class WireRehearsal:
    """A session in which a program has a slot.

    tables: of all slots.
    seed: of entropies and terms.
    sections: what else terms say, by name; see
        :class:`~clustering_protocols.terms.terms.SessionRequest`.
    absences: by round, the slots that do not come for their task.
    """

    params: Params
    layout: Layout
    tables: Mapping[str, MatrixSource] = field(repr=False)
    slot: str
    seed: int
    sections: Mapping[str, Any] = field(default_factory=dict)
    absences: Mapping[int, Collection[str]] = field(default_factory=dict)

    def begin(self) -> RehearsedSession:
        """Return the session; its first round is open."""
        session = RehearsedSession(
            *(self.params, self.layout, self.tables, self.seed),
            session=_SESSION,
            about=_ABOUT,
            **self.sections,
        )
        session.absences = self.absences
        return session

    def leave_gaps(self, missing: Missing) -> WireRehearsal:
        """Return the rehearsal over tables that lack values, and terms that say so.

        Each column lacks one, in one of the first two rows.
        """
        tables = {}
        for slot, table in self.tables.items():
            rows = matrix(table).copy()
            places = np.arange(rows.shape[1])
            rows[places % 2, places] = np.nan
            tables[slot] = MatrixSource(rows, table.columns, table.ids, gaps=True)
        names = [each.clustered_part.names for each in self.sections["dictionary"]]
        said = [[Treatment(name=n, missing=missing) for n in each] for each in names]
        prepared = [Preparation(fields=tuple(fields)) for fields in said]
        sections = {**self.sections, "preparation": prepared}
        return replace(self, tables=tables, sections=sections)

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
                "rows": [
                    [None if math.isnan(value) else value for value in row]
                    for row in matrix(table).tolist()
                ],
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

        The session continues with the answers of this SDK, also where others came. What
        a party chooses is the program's: others get it, and this SDK takes it over.
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
        told: list[RehearsedMessage] = []

        def hear(task: bytes, due: engine.TaskOutcome) -> engine.TaskOutcome:
            message, taken = self._answer(program, reader, task, due, session)
            told.append(message)
            return taken

        session.heard = {own: hear}
        while not session.is_over:
            if isinstance(session.move, engine.Choosing):
                session.choose(None)
            session.turn()
            yield from told
            if any(message.wrong.startswith(".problem") for message in told):
                return
            told.clear()
        result = session.final_step.results[own]
        found = program.ask("conclude", {"result": _text(result)})
        labels = session.outcomes()[own].labels.tolist()
        yield self._judge(packets.read(result), "labels", found, {"labels": labels})

    def _answer(
        self,
        program: Program,
        reader: ContributionReader,
        task: bytes,
        due: engine.TaskOutcome,
        session: Session,
    ) -> tuple[RehearsedMessage, engine.TaskOutcome]:
        """Return what the program answered, and with what the session continues."""
        asked, right = packets.read(task), packets.read(due.contribution)
        leeway = leeway_of(asked, right, session.session)
        kind = right.header.record["kind"]
        answer = program.ask("step", {"task": _text(task)})
        if "output" not in answer:
            return self._judge(asked, kind, answer, {}), due
        found = base64.b64decode(str(answer["output"].get("contribution", "")))
        wrong = reader.find_difference(
            task, due.contribution, found, tolerance=TOLERANCE, leeway=leeway
        )
        if leeway.chosen and not wrong:
            memory = _take_over(
                reader.open_chosen(task, found),
                session.memories[self.slot],
                due.memory,
            )
            due = due._replace(contribution=found, memory=memory)
        return _message(asked, kind, wrong), due

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


def _take_over(chosen: Mapping[str, bytes], before: Memory, after: Memory) -> Memory:
    """Return what this SDK remembers where a program has chosen: the same record."""
    entries = dict(after.entries)
    for name, content in after.entries.items():
        kind = name.partition(".")[0]  # behind it stands the number of the run
        if kind in chosen and before.entries.get(name) != content:
            entries[name] = chosen[kind]
    return Memory(entries)


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
