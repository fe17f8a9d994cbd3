"""Which sessions are recorded, and which messages of theirs a party must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from benchmarks.vectors import dc_refusals, dummy_refusals
from benchmarks.vectors.forgery import Forger
from benchmarks.vectors.recordings import Recording
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import Anchor, DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.terms import Layout, Slot
from party_sdk.conformance.vectors import Level, Refusal, SessionFile

Refuse = Callable[[Forger], list[Refusal]]
_NAMES: Final = ("north", "south", "west")
_ROWS: Final = 11


def _layout(*cells: tuple[int, int]) -> Layout:
    return Layout(
        slots=tuple(
            Slot(name=name, row=row, column=column)
            for name, (row, column) in zip(_NAMES, cells, strict=False)
        )
    )


def _tables(layout: Layout, n_columns: int) -> dict[str, MatrixSource]:
    """Return tables of groups of rows: columns with ü, ids where rows are shared."""
    drawn = np.random.default_rng(7)
    found = {}
    for slot in layout.slots:
        ids = [f"P {number:02d} " for number in drawn.permutation(_ROWS)]
        centre = 4.0 * (np.arange(_ROWS) % 3)[:, None]
        rows = np.round(drawn.normal(centre, 1.0, (_ROWS, n_columns)), 3)
        names = [f"größe {slot.column}.{number}" for number in range(n_columns)]
        shared = len(layout.row_group(slot.row)) > 1
        found[slot.name] = MatrixSource(rows, names, ids if shared else None)
    return found


_SPLIT_ROWS: Final = _layout((0, 0), (1, 0), (2, 0))
_TWO: Final = _layout((0, 0), (1, 0))
_MIXED: Final = _layout((0, 0), (0, 1), (1, 0))


def _dummy(name: str, slot: str, layout: Layout, params: Dummy) -> Recording:
    tables = _tables(layout, 2)
    return Recording(
        name=name, level="A", params=params, layout=layout, tables=tables, slot=slot
    )


def _dc(name: str, slot: str, layout: Layout, params: DataCollaboration) -> Recording:
    tables = _tables(layout, 3)
    level: Level = "D" if layout.n_column_groups > 1 else "B"
    return Recording(
        name=name, level=level, params=params, layout=layout, tables=tables, slot=slot
    )


_ANCHOR: Final = Anchor(n_rows=14)
_DC: Final = DataCollaboration(n_clusters=3, anchor=_ANCHOR)


def _no_refusals(_: Forger) -> list[Refusal]:
    return []


_SESSIONS: Final[dict[str, list[tuple[Recording, Refuse]]]] = {
    "dummy": [
        (
            _dummy("in the middle", "south", _SPLIT_ROWS, Dummy(n_clusters=3)),
            dummy_refusals.list_refusals,
        ),
        (
            _dummy("two attempts are void", "north", _TWO, Dummy(void_attempts=2)),
            dummy_refusals.list_refusals_of_attempts,
        ),
        (
            _dummy("rows that are shared", "south", _MIXED, Dummy()),
            _no_refusals,
        ),
    ],
    "dc": [
        (_dc("a member of three", "west", _SPLIT_ROWS, _DC), dc_refusals.list_refusals),
        (
            _dc("the leader of three", "north", _SPLIT_ROWS, _DC),
            _no_refusals,
        ),
        (
            _dc("the leader of two", "north", _TWO, _DC),
            _no_refusals,
        ),
        (
            _dc(
                "a member of two, ranges and all dimensions",
                "south",
                _TWO,
                DataCollaboration(
                    n_clusters=2,
                    scaling="center",
                    dimensions="all",
                    anchor=Anchor(kind="uniform", n_rows=14),
                ),
            ),
            dc_refusals.list_refusals_of_pairs,
        ),
        (
            _dc(
                "rows that are shared",
                "north",
                _MIXED,
                DataCollaboration(
                    n_clusters=3,
                    scaling="local",
                    anchor=Anchor(kind="rotated", n_rows=14),
                ),
            ),
            _no_refusals,
        ),
    ],
}
PROTOCOLS: Final = tuple(_SESSIONS)


def build_sessions(protocol: str) -> SessionFile:
    """Return the recorded sessions of a protocol."""
    found = []
    for recording, refuse in _SESSIONS[protocol]:
        session = recording.play()
        forger = Forger(recording=recording, session=session)
        found.append(recording.record(session, refuse(forger)))
    return SessionFile(
        protocol=protocol,
        about="Sections 4 to 13: sessions as one party knows them.",
        sessions=found,
    )
