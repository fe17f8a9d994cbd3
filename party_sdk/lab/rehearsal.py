"""Rehearse a session at home to show what a party would send; nothing is sent.

All roles run in this process: the analyst, the party with its table, and the other
parties with made-up tables. A made-up table has the party's own columns, each shuffled,
or, for other columns, random values that fit the terms' dictionary. Figures and labels
are therefore meaningless, but names, shapes, types and sizes are those of a real
session with parties of this size.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from clustering_protocols import engine, session_terms, simulation
from clustering_protocols.engine.inspection import Inspection, Rehearsal, RehearsedRound
from clustering_protocols.numerics.data_source import DataSource, MatrixSource, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.alignment.identifiers import join_parts
from clustering_protocols.terms.schema import Field
from clustering_protocols.terms.session_risks import SUMS_LIMIT
from clustering_protocols.terms.terms import Terms

_SEED = 2


def rehearse(
    terms: Terms,
    slot: str,
    data: DataSource,
    choices: Mapping[str, Any] | None = None,
) -> Rehearsal:
    """Rehearse a session of these terms in this process, and return what would be sent.

    Raises CoterieError: as the party or the protocol would in a real session.
    """
    played = _RecordedSession(terms, slot, data, choices or {})
    played.run_to_end()
    answers = [
        Inspection.of(
            outcome.contribution, outcome.notes, outcome.question, outcome.records
        )
        for outcome in played.answers
    ]
    return Rehearsal(
        session=terms.session,
        slot=slot,
        protocol=terms.protocol.name,
        n_rows=played.data[slot].n_rows,
        rounds=0 if played.last is None else played.last.round,
        n_bytes=sum(outcome.n_bytes for outcome in answers),
        seconds=played.costs[slot].seconds,
        # Consecutive contributions of the same kind and form are merged.
        left=tuple(
            _merge_rounds(list(group)) for _, group in groupby(answers, _group_key)
        ),
        notes={
            name: value for outcome in answers for name, value in outcome.notes.items()
        },
        asks=tuple(outcome.asks for outcome in answers if outcome.asks),
    )


class _RecordedSession(simulation.Session):
    """A session that records the answers of one party."""

    def __init__(
        self, terms: Terms, slot: str, data: DataSource, choices: Mapping[str, Any]
    ) -> None:
        self.answers: list[engine.TaskOutcome] = []
        self._own = slot
        super().__init__(
            session_terms.check_terms(terms),
            terms.layout,
            _make_up_tables(terms, slot, data),
            _SEED,
            choices={
                **{name: {SUMS_LIMIT: 1.0} for name in terms.layout.names},
                slot: choices,
            },
            timer=time.monotonic,
            session=terms.session,
            **terms.optional_sections,
        )

    def ask_party(self, slot: str, task: bytes) -> engine.TaskOutcome:
        answer = super().ask_party(slot, task)
        if slot == self._own:
            self.answers.append(answer)
        return answer


def _make_up_tables(terms: Terms, own: str, data: DataSource) -> dict[str, DataSource]:
    rng = np.random.default_rng(_SEED)
    values, own_slot = matrix(data), terms.layout.slot(own)
    params = session_terms.check_terms(terms)
    tables: dict[str, DataSource] = {}
    for slot in terms.layout.slots:
        if slot.name == own:
            tables[own] = data
            continue
        names: Sequence[str] = data.columns
        cells = rng.permuted(values, axis=0)
        if slot.column != own_slot.column:
            schema = terms.dictionary_of(slot.name)
            if schema is None:
                names = [f"made_up_{number}" for number in range(1, len(names) + 1)]
            else:
                names = schema.names
                cells = np.column_stack(
                    [_draw_values(field, len(values), rng) for field in schema.fields]
                )
        ids = data.ids
        if ids is not None and slot.row != own_slot.row:  # other people
            people = [f"made-up-{slot.row}-{number}" for number in range(len(values))]
            n_parts = len(params.match_key_columns)
            ids = [join_parts([name] * n_parts) if n_parts else name for name in people]
        tables[slot.name] = MatrixSource(cells, names, ids, gaps=True)
    return tables


def _draw_values(field: Field, n_rows: int, rng: np.random.Generator) -> FloatArray:
    low, high = field.extremes
    if not np.isfinite(low) or not np.isfinite(high):
        middle = low if np.isfinite(low) else high if np.isfinite(high) else 0.0
        spread = 50.0 if field.type in {"integer", "date"} else 1.0
        values = middle + spread * np.abs(rng.normal(size=n_rows))
        values = np.clip(
            values if not np.isfinite(high) else 2 * middle - values, low, high
        )
    else:
        values = rng.uniform(low, high, n_rows)
    return values if field.type == "number" else np.clip(np.round(values), low, high)


def _merge_rounds(group: Sequence[Inspection]) -> RehearsedRound:
    return RehearsedRound(
        first=group[0].round,
        last=group[-1].round,
        n=len(group),
        example=group[0],
        n_bytes=sum(inspection.n_bytes for inspection in group),
    )


def _group_key(answer: Inspection) -> Any:
    arrays = [(array.name, array.shape, array.dtype) for array in answer.arrays]
    envelopes = [(envelope.receiver, envelope.kind) for envelope in answer.envelopes]
    return answer.stage, answer.kind, arrays, envelopes, sorted(answer.values)
