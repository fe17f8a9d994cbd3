"""Which sessions are recorded, and which of their messages a party must refuse."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.vectors import refusals
from benchmarks.vectors.forgery import Forger
from benchmarks.vectors.form import SessionFile
from benchmarks.vectors.recordings import N_COLUMNS, Recording
from clustering_protocols.protocols.dc import Anchor, DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout, Slot

_NAMES: Final = ("north", "south", "west", "east")
_RANGES: Final = (-8.0, 16.0)


def _layout(*cells: tuple[int, int]) -> Layout:
    return Layout(
        slots=tuple(
            Slot(name=name, row=row, column=column)
            for name, (row, column) in zip(_NAMES, cells, strict=False)
        )
    )


_SPLIT_ROWS: Final = _layout((0, 0), (1, 0), (2, 0))
_FOUR: Final = _layout((0, 0), (1, 0), (2, 0), (3, 0))
_TWO: Final = _layout((0, 0), (1, 0))
_SPLIT_COLUMNS: Final = _layout((0, 0), (0, 1), (0, 2))
_PAIR: Final = _layout((0, 0), (0, 1))
_MIXED: Final = _layout((0, 0), (0, 1), (1, 0))


_record_rows: Final = partial(Recording, n_rows=24)
"""A recording of `llf` over rows, with enough of them for its clusters."""

_AWAY: Final = {12: ["south"], 13: ["north"], 16: ["south"], 17: ["south"]}
"""Who misses the second and third update, the last task and the closing of an `llf`."""
_ANCHOR: Final = Anchor(n_rows=14)
_KEYS: Final = (
    "given_name, surname | sorted-names + birth_date | date",
    "surname | first:6 + birth_date | year-month",
)
_LLF: Final = LosslessFederated(
    n_clusters=3,
    init="given",
    initial_centroids=tuple((at,) * N_COLUMNS for at in (0.0, 4.0, 8.0)),
    min_cluster_rows=5,
)
_DEGREES: Final = _LLF.model_copy(
    update={"algorithm": "fuzzy_cmeans", "small_cohorts": "allow", "max_iter": 4}
)
_DC: Final = DataCollaboration(n_clusters=3, anchor=_ANCHOR)


_SESSIONS: Final[dict[str, list[Recording]]] = {
    "dummy": [
        Recording(
            "in the middle",
            "A",
            "south",
            _SPLIT_ROWS,
            Dummy(n_clusters=3),
            list_refusals=refusals.of_dummy,
        ),
        Recording(
            "two attempts are void",
            "A",
            "north",
            _TWO,
            Dummy(void_attempts=2),
            list_refusals=refusals.of_second_attempt,
        ),
        Recording("rows that are shared", "A", "south", _MIXED, Dummy()),
    ],
    "dc": [
        Recording(
            "a member of three",
            "B",
            "west",
            _SPLIT_ROWS,
            _DC,
            list_refusals=refusals.of_adding_member,
        ),
        Recording("the leader of three", "B", "north", _SPLIT_ROWS, _DC),
        Recording("the leader of two", "B", "north", _TWO, _DC),
        Recording(
            "a member of two, ranges and all dimensions",
            "B",
            "south",
            _TWO,
            DataCollaboration(
                n_clusters=2,
                scaling="center",
                dimensions="all",
                anchor=Anchor(kind="uniform", n_rows=14),
            ),
            list_refusals=refusals.of_pair,
        ),
        Recording(
            "rows that are shared",
            "D",
            "north",
            _MIXED,
            DataCollaboration(
                n_clusters=3,
                scaling="local",
                anchor=Anchor(kind="rotated", n_rows=14),
            ),
        ),
        Recording(
            "two runs",
            "E",
            "south",
            _SPLIT_ROWS,
            _DC,
            evaluation=Evaluation(n_clusters=(2, 3)),
            list_refusals=refusals.of_two_runs,
        ),
        Recording(
            "ids of which some are common",
            "D",
            "south",
            _PAIR,
            DataCollaboration(
                n_clusters=3, anchor=_ANCHOR, alignment=Alignment(method="ecdh")
            ),
            list_refusals=partial(refusals.of_linked_rows, n_keys=1),
        ),
        Recording(
            "people whom two match keys link",
            "D",
            "south",
            _PAIR,
            DataCollaboration(
                n_clusters=3,
                anchor=_ANCHOR,
                alignment=Alignment(method="ecdh", match_keys=_KEYS),
            ),
            list_refusals=partial(refusals.of_linked_rows, n_keys=len(_KEYS)),
        ),
    ],
    "llf": [
        _record_rows(
            "the first of three",
            "C",
            "north",
            _SPLIT_ROWS,
            _LLF,
            list_refusals=refusals.of_given_start,
        ),
        _record_rows("the last of three", "C", "west", _SPLIT_ROWS, _LLF),
        _record_rows(
            "a start within ranges",
            "E",
            "south",
            _SPLIT_ROWS,
            LosslessFederated(n_clusters=4, init="bounds", scaling="none"),
            ranges=_RANGES,
        ),
        _record_rows(
            "two numbers of clusters",
            "E",
            "west",
            _SPLIT_ROWS,
            LosslessFederated(n_clusters=3, min_cluster_rows=5),
            evaluation=Evaluation(n_clusters=(2, 3)),
            list_refusals=refusals.of_runs_of_rows,
        ),
        _record_rows(
            "a member of four, who misses rounds and the end",
            "E",
            "south",
            _FOUR,
            LosslessFederated(
                n_clusters=3,
                init="random_party",
                quorum=3,
                max_iter=4,
                min_cluster_rows=5,
            ),
            absences=_AWAY,
        ),
        _record_rows(
            "degrees, the first of four, of whom others miss rounds",
            "E",
            "north",
            _FOUR,
            _DEGREES.model_copy(update={"quorum": 3}),
            absences={10: ["east"], 14: ["south"]},
        ),
        _record_rows(
            "degrees, the second of four, whose first misses rounds",
            "E",
            "south",
            _FOUR,
            _DEGREES.model_copy(update={"quorum": 3, "fuzzifier": 1.5}),
            absences={10: ["north"], 13: ["north"]},
        ),
        Recording(
            "degrees of columns",
            "E",
            "north",
            _SPLIT_COLUMNS,
            LosslessFederated(
                n_clusters=2,
                algorithm="fuzzy_cmeans",
                small_cohorts="allow",
                max_iter=4,
            ),
        ),
        Recording(
            "two numbers of clusters over columns",
            "E",
            "west",
            _SPLIT_COLUMNS,
            LosslessFederated(n_clusters=3),
            evaluation=Evaluation(n_clusters=(2, 3)),
        ),
        Recording(
            "columns",
            "D",
            "south",
            _SPLIT_COLUMNS,
            LosslessFederated(n_clusters=3),
            list_refusals=refusals.of_columns,
        ),
    ],
}
PROTOCOLS: Final = tuple(_SESSIONS)


def build_sessions(protocol: str) -> SessionFile:
    """Return the recorded sessions of a protocol."""
    found = []
    for recording in _SESSIONS[protocol]:
        session = recording.play()
        forger = Forger(recording=recording, session=session)
        found.append(recording.record(session, recording.list_refusals(forger)))
    return SessionFile(
        protocol=protocol,
        about="Sections 4 to 13: sessions as one party knows them.",
        sessions=found,
    )
