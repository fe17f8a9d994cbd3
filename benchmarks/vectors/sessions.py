"""Which sessions are recorded, and which of their messages a party must refuse."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.vectors.forgery import Forger
from benchmarks.vectors.form import SessionFile
from benchmarks.vectors.recordings import N_COLUMNS, Recording
from benchmarks.vectors.refusals import (
    of_adding_member,
    of_columns,
    of_dummy,
    of_given_start,
    of_linked_rows,
    of_pair,
    of_runs_of_rows,
    of_second_attempt,
    of_two_runs,
)
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
_AWAY: Final = {12: ["south"], 13: ["north"], 16: ["south"], 17: ["south"]}
"""Who misses the second and third update, the last task and the closing of an `llf`."""
_ANCHOR: Final = Anchor(n_rows=14)
_KEYS: Final = (
    "given_name, surname | sorted-names + birth_date | date",
    "surname | first:6 + birth_date | year-month",
)
_DC: Final = DataCollaboration(n_clusters=3, anchor=_ANCHOR)
_DC_OF_PAIR: Final = DataCollaboration(
    n_clusters=2,
    scaling="center",
    dimensions="all",
    anchor=Anchor(kind="uniform", n_rows=14),
)
_DC_MIXED: Final = DataCollaboration(
    n_clusters=3, scaling="local", anchor=Anchor(kind="rotated", n_rows=14)
)
_LINKED_IDS: Final = _DC.model_copy(update={"alignment": Alignment(method="ecdh")})
_LINKED_KEYS: Final = _DC.model_copy(
    update={"alignment": Alignment(method="ecdh", match_keys=_KEYS)}
)

_record_rows: Final = partial(Recording, n_rows=24)
"""A recording of `llf` over rows, with enough of them for its clusters."""
_LLF: Final = LosslessFederated(n_clusters=3, min_cluster_rows=5)
_LLF_GIVEN: Final = LosslessFederated(
    n_clusters=3,
    init="given",
    initial_centroids=tuple((at,) * N_COLUMNS for at in (0.0, 4.0, 8.0)),
    min_cluster_rows=5,
)
_LLF_IN_RANGES: Final = LosslessFederated(n_clusters=4, init="bounds", scaling="none")
_LLF_QUORUM: Final = _LLF.model_copy(
    update={"init": "random_party", "quorum": 3, "max_iter": 4}
)
_DEGREES: Final = _LLF_GIVEN.model_copy(
    update={
        "algorithm": "fuzzy_cmeans",
        "small_cohorts": "allow",
        "max_iter": 4,
        "quorum": 3,
    }
)
_CRISPER: Final = _DEGREES.model_copy(update={"fuzzifier": 1.5})
_COLUMNS: Final = LosslessFederated(n_clusters=3)
_DEGREES_OF_COLUMNS: Final = LosslessFederated(
    n_clusters=2, algorithm="fuzzy_cmeans", small_cohorts="allow", max_iter=4
)
_RUNS: Final = Evaluation(n_clusters=(2, 3))

_SESSIONS: Final[dict[str, dict[str, Recording]]] = {
    "dummy": {
        "in the middle": Recording(
            "A", "south", _SPLIT_ROWS, Dummy(n_clusters=3), refusals=of_dummy
        ),
        "two attempts are void": Recording(
            "A", "north", _TWO, Dummy(void_attempts=2), refusals=of_second_attempt
        ),
        "rows that are shared": Recording("A", "south", _MIXED, Dummy()),
    },
    "dc": {
        "a member of three": Recording(
            "B", "west", _SPLIT_ROWS, _DC, refusals=of_adding_member
        ),
        "the leader of three": Recording("B", "north", _SPLIT_ROWS, _DC),
        "the leader of two": Recording("B", "north", _TWO, _DC),
        "a member of two, ranges and all dimensions": Recording(
            "B", "south", _TWO, _DC_OF_PAIR, refusals=of_pair
        ),
        "rows that are shared": Recording("D", "north", _MIXED, _DC_MIXED),
        "two runs": Recording(
            "E", "south", _SPLIT_ROWS, _DC, evaluation=_RUNS, refusals=of_two_runs
        ),
        "ids of which some are common": Recording(
            "D", "south", _PAIR, _LINKED_IDS, refusals=partial(of_linked_rows, n_keys=1)
        ),
        "people whom two match keys link": Recording(
            "D",
            "south",
            _PAIR,
            _LINKED_KEYS,
            refusals=partial(of_linked_rows, n_keys=2),
        ),
    },
    "llf": {
        "the first of three": _record_rows(
            "C", "north", _SPLIT_ROWS, _LLF_GIVEN, refusals=of_given_start
        ),
        "the last of three": _record_rows("C", "west", _SPLIT_ROWS, _LLF_GIVEN),
        "a start within ranges": _record_rows(
            "E", "south", _SPLIT_ROWS, _LLF_IN_RANGES, ranges=_RANGES
        ),
        "two numbers of clusters": _record_rows(
            "E", "west", _SPLIT_ROWS, _LLF, evaluation=_RUNS, refusals=of_runs_of_rows
        ),
        "a member of four, who misses rounds and the end": _record_rows(
            "E", "south", _FOUR, _LLF_QUORUM, absences=_AWAY
        ),
        "degrees, the first of four, of whom others miss rounds": _record_rows(
            "E", "north", _FOUR, _DEGREES, absences={10: ["east"], 14: ["south"]}
        ),
        "degrees, the second of four, whose first misses rounds": _record_rows(
            "E", "south", _FOUR, _CRISPER, absences={10: ["north"], 13: ["north"]}
        ),
        "degrees of columns": Recording(
            "E", "north", _SPLIT_COLUMNS, _DEGREES_OF_COLUMNS
        ),
        "two numbers of clusters over columns": Recording(
            "E", "west", _SPLIT_COLUMNS, _COLUMNS, evaluation=_RUNS
        ),
        "columns": Recording(
            "D", "south", _SPLIT_COLUMNS, _COLUMNS, refusals=of_columns
        ),
    },
}
PROTOCOLS: Final = tuple(_SESSIONS)


def build_sessions(protocol: str) -> SessionFile:
    """Return the recorded sessions of a protocol."""
    found = []
    for name, recording in _SESSIONS[protocol].items():
        session = recording.play()
        refusals = recording.refusals(Forger(recording=recording, session=session))
        found.append(recording.record(name, session, refusals))
    return SessionFile(
        protocol=protocol,
        about="Sections 4 to 13: sessions as one party knows them.",
        sessions=found,
    )
