"""Sessions as one party knows them, recorded while one process plays all roles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.vectors.contributions import leeway_of
from benchmarks.vectors.form import Level, RecordedSession, Refusal, VectorCase
from benchmarks.vectors.product import as_base64, build_invitation
from clustering_protocols.contract import Params
from clustering_protocols.engine import Choosing
from clustering_protocols.engine.packets import parse
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.shared_stages.alignment.identifiers import join_parts
from clustering_protocols.simulation import Session
from clustering_protocols.simulation.session import COORDINATOR
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import About, Layout
from party_sdk.lab.synthetic_people import Cells, make_register

if TYPE_CHECKING:
    from benchmarks.vectors.forgery import Forger

_SESSION: Final = "wards"
_ABOUT: Final = About(title="Größe und Gewicht")
_SEED: Final = 7
N_COLUMNS: Final = 3


def _draw_tables(
    layout: Layout, n_rows: int, params: Params
) -> dict[str, MatrixSource]:
    """Return a table for each slot: three groups of rows, ids if parties compare ids.

    If rows are selected, one row of each slot is of somebody whom no other slot has.
    """
    rng = np.random.default_rng(_SEED)
    tables = {}
    register = make_register(n_rows * len(layout.slots), np.random.default_rng(_SEED))
    for place, slot in enumerate(layout.slots):
        people = rng.permutation(n_rows)
        if params.selects_rows:
            people = np.where(people == n_rows - 1, n_rows + place, people)
        numbered = [(number, register[number]) for number in people.tolist()]
        ids = _name_people(numbered, params.match_key_columns, is_first=place == 0)
        centre = 4.0 * (np.arange(n_rows) % 3)[:, None]
        rows = np.round(rng.normal(centre, 1.0, (n_rows, N_COLUMNS)), 3)
        names = [f"größe {slot.column}.{number}" for number in range(N_COLUMNS)]
        shared = len(layout.row_group(slot.row)) > 1
        tables[slot.name] = MatrixSource(rows, names, ids if shared else None)
    return tables


def _name_people(
    people: Sequence[tuple[int, Cells]], columns: Sequence[str], *, is_first: bool
) -> list[str]:
    """Return ids of people, or their cells in the columns of match keys.

    Except at the first slot, the first cell of every fourth person is empty.
    """
    if not columns:
        return [f"P {number:02d} " for number, _ in people]
    ids = []
    for number, person in people:
        cells = [person.get(name, f"P {number:02d}") for name in columns]
        if number % 4 == 1 and not is_first:
            cells[0] = ""
        ids.append(join_parts(cells))
    return ids


@dataclass(frozen=True)
class Recording:
    """A session over made-up tables to record, and the slot whose side is recorded.

    n_rows: of each table.
    ranges: least and greatest value of every column, if the terms state them.
    absences: by round, the slots that do not come for their task.
    refusals: returns which messages of the session a party must refuse.
    """

    level: Level
    slot: str
    layout: Layout
    params: Params
    n_rows: int = 11
    ranges: tuple[float, float] | None = None
    evaluation: Evaluation | None = None
    absences: Mapping[int, Collection[str]] = field(default_factory=dict)
    refusals: Callable[[Forger], list[Refusal]] = lambda _: []

    @cached_property
    def tables(self) -> dict[str, MatrixSource]:
        """Return the tables of all slots."""
        return _draw_tables(self.layout, self.n_rows, self.params)

    def play(self) -> Session:
        """Play the session to its end, and return it."""
        dictionary = None
        if self.ranges:
            low, high = self.ranges
            dictionary = [
                numeric_schema(self.tables[group[0]].columns, low, high)
                for group in self.layout.column_groups
            ]
        session = Session(
            *(self.params, self.layout, self.tables, _SEED),
            session=_SESSION,
            about=_ABOUT,
            dictionary=dictionary,
            evaluation=self.evaluation,
        )
        while not session.is_over:
            if isinstance(session.move, Choosing):
                session.choose(None)
            session.play_round(self.absences.get(session.open.round, ()))
        return session

    def record(
        self, name: str, session: Session, refusals: list[Refusal]
    ) -> RecordedSession:
        """Return the session as the slot knows it."""
        opening = VectorCase(
            name="begin",
            section="5",
            call="init",
            input=self._describe_opening(session),
            output={},
        )
        return RecordedSession(
            name=name,
            level=self.level,
            receivers={
                slot: PartyKeys(entropy, _SESSION, slot)
                .opening.private_bytes_raw()
                .hex()
                for slot, entropy in session.entropies.items()
                if slot not in {self.slot, COORDINATOR}
            },
            steps=[opening, *self._steps(session), self._end(session)],
            refusals=refusals,
        )

    def _describe_opening(self, session: Session) -> dict[str, Any]:
        """Return what the slot knows when its session begins: the input of ``init``."""
        context, table = session.session, self.tables[self.slot]
        coordinator = session.entropies[COORDINATOR]
        terms = digest(context.agreement.terms.encode())
        invitation = build_invitation(coordinator, _SESSION, self.slot, terms)
        return {
            "slot": self.slot,
            "entropy": session.entropies[self.slot].hex(),
            "invitation": str(invitation),
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

    def _steps(self, session: Session) -> Iterator[VectorCase]:
        tasks = [m.payload for m in session.sent if m.receiver == self.slot]
        answers = [m.payload for m in session.sent if m.sender == self.slot]
        for task, answer in zip(tasks, answers, strict=True):
            asked = parse(task)
            at = asked.address
            yield VectorCase(
                name=f"{asked.header.record['kind']}, round {at.round}.{at.attempt}",
                section="7" if at.stage in {"opening", "closing"} else "12",
                call="step",
                input={"task": as_base64(task)},
                output={"contribution": as_base64(answer)},
                **leeway_of(parse(answer)),
            )

    def _end(self, session: Session) -> VectorCase:
        result = session.final_step.results[self.slot]
        labels = session.outcomes()[self.slot].labels.tolist()
        return VectorCase(
            name="the result",
            section="12",
            call="conclude",
            input={"result": as_base64(result)},
            output={"labels": labels},
        )
