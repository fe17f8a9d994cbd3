"""Which sessions are recorded, and which messages of theirs a party must refuse."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from benchmarks.vectors import (
    dc_refusals,
    dummy_refusals,
    fccm_refusals,
    linkage_refusals,
    llf_refusals,
    llf_total_refusals,
    omnifc_refusals,
    pqmds_refusals,
    prepared,
    profile_refusals,
)
from benchmarks.vectors.forgery import Forger
from benchmarks.vectors.recordings import ListRefusals, Recording, list_none
from clustering_protocols.common.suitability import Kind
from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import Anchor, DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.fccm import CoClustering
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import Privacy, ProductQuantisation
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.release import Release
from clustering_protocols.terms.terms import Layout, Slot
from party_sdk.conformance.vectors import Level, SessionFile
from party_sdk.lab import WireRehearsal, describe_tables, draw_tables

_NAMES: Final = ("north", "south", "west", "east")
_ROWS: Final = 11
_SEED: Final = 7
_COLUMNS: Final = 3
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


def _record(
    name: str,
    level: Level,
    slot: str,
    layout: Layout,
    params: Params,
    *,
    n_rows: int = _ROWS,
    kind: Kind = "numeric",
    ranges: tuple[float, float] | None = None,
    absences: Mapping[int, Collection[str]] = MappingProxyType({}),
    list_refusals: ListRefusals = list_none,
    **sections: object,
) -> Recording:
    """Return a recording over made tables of a kind of data.

    ranges: least and greatest value of what is clustered, where terms say it.
    absences: by round, the slots that do not come.
    list_refusals: of it.
    sections: of the terms.
    """
    described = "release" in sections
    tables = draw_tables(
        *(layout, n_rows, _COLUMNS, _SEED, params, kind), described=described
    )
    if ranges or described:
        sections["dictionary"] = describe_tables(layout, tables, ranges)
    rehearsal = WireRehearsal(
        params=params,
        layout=layout,
        tables=tables,
        slot=slot,
        seed=_SEED,
        sections=sections,
        absences=absences,
    )
    return Recording(
        name=name, level=level, rehearsal=rehearsal, list_refusals=list_refusals
    )


_AWAY: Final = {12: ["south"], 13: ["north"], 16: ["south"], 17: ["south"]}
"""Of a session of `llf`: its second and third update, the last task, the closing."""
_ANCHOR: Final = Anchor(n_rows=14)
_KEYS: Final = (
    "given_name, surname | sorted-names + birth_date | date",
    "surname | first:6 + birth_date | year-month",
)
_LLF: Final = LosslessFederated(
    n_clusters=3,
    init="given",
    initial_centroids=tuple((at,) * _COLUMNS for at in (0.0, 4.0, 8.0)),
    min_cluster_rows=5,
)
_DC: Final = DataCollaboration(n_clusters=3, anchor=_ANCHOR)


_SESSIONS: Final[dict[str, list[Recording]]] = {
    "dummy": [
        _record(
            "in the middle",
            "A",
            "south",
            _SPLIT_ROWS,
            Dummy(n_clusters=3),
            list_refusals=dummy_refusals.list_refusals,
        ),
        _record(
            "two attempts are void",
            "A",
            "north",
            _TWO,
            Dummy(void_attempts=2),
            list_refusals=dummy_refusals.list_refusals_of_attempts,
        ),
        _record("rows that are shared", "A", "south", _MIXED, Dummy()),
    ],
    "dc": [
        _record(
            "a member of three",
            "B",
            "west",
            _SPLIT_ROWS,
            _DC,
            list_refusals=dc_refusals.list_refusals,
        ),
        _record("the leader of three", "B", "north", _SPLIT_ROWS, _DC),
        _record("the leader of two", "B", "north", _TWO, _DC),
        _record(
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
            list_refusals=dc_refusals.list_refusals_of_pairs,
        ),
        _record(
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
        _record(
            "two runs",
            "E",
            "south",
            _SPLIT_ROWS,
            _DC,
            evaluation=Evaluation(n_clusters=(2, 3)),
            list_refusals=dc_refusals.list_refusals_of_runs,
        ),
        _record(
            "ids of which some are common",
            "D",
            "south",
            _PAIR,
            DataCollaboration(
                n_clusters=3, anchor=_ANCHOR, alignment=Alignment(method="ecdh")
            ),
            list_refusals=linkage_refusals.list_refusals_of_ids,
        ),
        _record(
            "people whom two match keys link",
            "D",
            "south",
            _PAIR,
            DataCollaboration(
                n_clusters=3,
                anchor=_ANCHOR,
                alignment=Alignment(method="ecdh", match_keys=_KEYS),
            ),
            list_refusals=linkage_refusals.list_refusals_of_keys,
        ),
        Recording(
            name="fields of all types, filled",
            level="E",
            rehearsal=WireRehearsal(
                params=DataCollaboration(n_clusters=3, anchor=Anchor(n_rows=20)),
                layout=_SPLIT_ROWS,
                tables=prepared.draw_fields(_SPLIT_ROWS.names, _SEED),
                slot="west",
                seed=_SEED,
                sections=prepared.SECTIONS,
            ),
            list_refusals=prepared.list_refusals,
        ),
    ],
    "llf": [
        _record(
            "the first of three",
            "C",
            "north",
            _SPLIT_ROWS,
            _LLF,
            n_rows=24,
            list_refusals=llf_total_refusals.list_refusals,
        ),
        _record("the last of three", "C", "west", _SPLIT_ROWS, _LLF, n_rows=24),
        _record(
            "a start within ranges",
            "E",
            "south",
            _SPLIT_ROWS,
            LosslessFederated(n_clusters=4, init="bounds", scaling="none"),
            n_rows=24,
            ranges=_RANGES,
        ),
        _record(
            "two numbers of clusters, whose starts race",
            "E",
            "west",
            _SPLIT_ROWS,
            LosslessFederated(n_clusters=3, n_init=2, min_cluster_rows=5),
            n_rows=24,
            evaluation=Evaluation(n_clusters=(2, 3)),
            list_refusals=llf_refusals.list_refusals,
        ),
        _record(
            "profiles for everybody",
            "E",
            "south",
            _SPLIT_ROWS,
            _LLF,
            n_rows=24,
            release=Release(profiles="everybody", min_cluster_rows=5),
            list_refusals=profile_refusals.list_refusals,
        ),
        _record(
            "the leader tells profiles",
            "E",
            "north",
            _SPLIT_ROWS,
            _LLF,
            n_rows=24,
            release=Release(profiles="everybody"),
        ),
        _record(
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
            n_rows=24,
            absences=_AWAY,
        ),
        _record(
            "columns",
            "D",
            "south",
            _SPLIT_COLUMNS,
            LosslessFederated(n_clusters=3),
            list_refusals=llf_refusals.list_refusals_of_columns,
        ),
    ],
    "fccm": [
        _record(
            "in the middle",
            "E",
            "south",
            _SPLIT_COLUMNS,
            CoClustering(n_clusters=2, n_init=1, max_iter=4),
            kind="counts",
            list_refusals=fccm_refusals.list_refusals,
        ),
        _record(
            "the first slot, lanes that rest at other times",
            "E",
            "north",
            _SPLIT_COLUMNS,
            CoClustering(n_clusters=2, n_init=3, max_iter=8, tol=0.02),
            kind="counts",
        ),
    ],
    "omnifc": [
        _record(
            "in the middle",
            "E",
            "south",
            _SPLIT_ROWS,
            OmniFC(n_clusters=3),
            list_refusals=omnifc_refusals.list_refusals,
        ),
        _record(
            "ranges of a leader, distances to landmarks",
            "E",
            "west",
            _SPLIT_ROWS,
            OmniFC(n_clusters=3, scaling="minmax", distances="landmarks"),
            list_refusals=omnifc_refusals.list_refusals_of_ranges,
        ),
    ],
    "pqmds": [
        _record(
            "in the middle",
            "E",
            "south",
            _SPLIT_COLUMNS,
            ProductQuantisation(n_clusters=3),
            list_refusals=pqmds_refusals.list_refusals,
        ),
        _record(
            "fewer centres than rows",
            "E",
            "north",
            _SPLIT_COLUMNS,
            ProductQuantisation(n_clusters=3, codebook_size=4, coordinates=2),
        ),
        _record(
            "codes with noise",
            "E",
            "west",
            _SPLIT_COLUMNS,
            ProductQuantisation(
                n_clusters=2, privacy=Privacy(mechanism="laplace", epsilon=300.0)
            ),
            ranges=_RANGES,
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
