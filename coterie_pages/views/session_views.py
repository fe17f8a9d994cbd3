"""Views of a session's status, audit and result, for its page and its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias

from clustering_protocols import session_terms
from clustering_protocols.numerics.outcomes import OutcomeTable, outcome_tables
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.records.record import Record
from clustering_protocols.terms.terms import Layout, Terms
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import (
    Event,
    SessionState,
    SlotState,
    summarise_stop,
)
from coterie_pages.models import (
    AuditRow,
    Matrix,
    SlotAnswer,
    SlotEntry,
    StageSpan,
    Timeline,
    Work,
)

May: TypeAlias = Literal["cancel", "extend", "choose"]


def describe_status(status: SessionStatus) -> dict[str, Any]:
    """Return the fields of a report that a session's status has."""
    return {
        "session": status.id,
        "title": status.title or status.id,
        "protocol": status.protocol,
        "runs": tuple(status.runs),
        "state": status.state,
        "reason": status.detail or "",
        "created_at": status.created_at,
        "risks": tuple(status.risks),
    }


def seats_shown(
    status: SessionStatus, layout: Layout | None = None
) -> Iterator[SlotEntry]:
    """Yield the slots of a session's status; titles come from the layout."""
    for slot in status.slots:
        yield SlotEntry(
            slot=slot.name,
            title="" if layout is None else layout.slot(slot.name).title,
            row=slot.row,
            column=slot.column,
            state=slot.state,
            reason=slot.reason or "",
            read_at=slot.read_at,
            stopped=summarise_stop(slot.stopped),
            joined_at=slot.joined_at,
            n_rows=slot.n_rows,
        )


def may_of(status: SessionStatus) -> Iterator[May]:
    """Yield what a coordinator may do with a session now."""
    if status.is_over:
        return
    yield "cancel"
    if status.state is not SessionState.STEPPING:
        yield "extend"
    if status.state is SessionState.CHOOSING:
        yield "choose"


def line_of(entry: Mapping[str, Any]) -> AuditRow:
    """Return an entry of an audit as a line of a table."""
    values = {name: entry.get(name) for name in AuditRow.model_fields}
    return AuditRow.model_validate({n: value for n, value in values.items() if value})


_MOST_WORK: Final = 120
_MOST_ANSWERS: Final = 600
Entry = Mapping[str, Any]


def timeline_of(
    entries: Iterable[Entry], slots: Sequence[str], now: datetime
) -> Timeline:
    """Return the times in a session's audit.

    In long sessions neighbouring rounds are merged, and only some answers are returned.

    entries: of the audit, the oldest first.
    now: the end of a round that is still open.
    """
    lines = list(entries)
    events = [(line["event"], _answer(line)) for line in lines if line.get("slot")]
    answers = [answer for event, answer in events if event == "contribution"]
    joined = [answer for event, answer in events if event == SlotState.JOINED.value]
    rounds = list(_rounds(lines, now))
    step = max(1, -(-len(answers) // _MOST_ANSWERS))
    return Timeline(
        stages=tuple(_stages(rounds)),
        work=tuple(_merge_rounds([work for _, work in rounds])),
        answers=tuple(answers[::step]),
        slots=tuple(slots),
        joined=tuple(joined),
    )


def _answer(entry: Entry) -> SlotAnswer:
    time = datetime.fromisoformat(entry["at"])
    return SlotAnswer(slot=entry["slot"], at=time, round=entry.get("round") or 0)


def _rounds(entries: Iterable[Entry], now: datetime) -> Iterator[tuple[str, Work]]:
    """Yield each round with its stage, and when it was open."""
    opened: tuple[Entry, datetime] | None = None
    for entry in entries:
        time = datetime.fromisoformat(entry["at"])
        if entry["event"] == Event.ROUND_OPENED:
            opened = entry, time
        elif opened is not None and entry["event"] in _ENDINGS:
            yield _round(*opened, time)
            opened = None
    if opened is not None:
        yield _round(*opened, max(now, opened[1]))


def _round(entry: Entry, begin: datetime, end: datetime) -> tuple[str, Work]:
    work = Work(begin=begin, end=end, first_round=entry["round"], rounds=1)
    return entry.get("stage") or "", work


def _stages(rounds: Iterable[tuple[str, Work]]) -> Iterator[StageSpan]:
    """Yield when the rounds of each stage were open."""
    for name, rounds_of_stage in groupby(rounds, key=itemgetter(0)):
        works = [work for _, work in rounds_of_stage]
        if name:  # audits of earlier releases name no stage
            yield StageSpan(name=name, begin=works[0].begin, end=works[-1].end)


_ENDINGS: Final = frozenset(
    {
        Event.ROUND_COMPLETE.value,
        Event.DEADLINE.value,
        Event.CANCEL.value,
        Event.PARTY_STOPPED.value,
    }
)


def _merge_rounds(rounds: Sequence[Work]) -> Iterator[Work]:
    step = max(1, -(-len(rounds) // _MOST_WORK))
    for first in range(0, len(rounds), step):
        merged = rounds[first : first + step]
        yield Work(
            begin=merged[0].begin,
            end=merged[-1].end,
            first_round=merged[0].first_round,
            rounds=len(merged),
        )


_OTHER_ARRAYS: Final = frozenset(
    {"cluster_sizes", "clusters", "sizes", "centroids", "starts"}
)


def n_clusters_of(terms: Terms, status: SessionStatus) -> int | None:
    """Return the number of clusters of the selected run."""
    selected = [run.n_clusters for run in status.runs if run.chosen]
    if terms.evaluation is not None and selected:
        return selected[0]
    number: int | None = getattr(session_terms.check_terms(terms), "n_clusters", None)
    return number


def outcomes_in(terms: Terms, profiles: Sequence[Profile]) -> tuple[OutcomeTable, ...]:
    """Return intervals and tests of the variables that are only described."""
    described = [schema.described_names for schema in terms.dictionary or ()]
    return outcome_tables(profiles, described)


def result_of(summary: Record, n_clusters: int | None) -> dict[str, Any]:
    """Return sizes, centroids and other figures that the coordinator may read.

    If a protocol publishes no sizes of small clusters, those of the others are named.
    """
    arrays = summary.arrays
    sizes, clusters = arrays.get("cluster_sizes"), arrays.get("clusters")
    details = plain(summary.values)
    details |= {
        name: ", ".join(map(str, array.tolist()))
        for name, array in arrays.items()
        if array.ndim == 1 and array.size and name not in _OTHER_ARRAYS
    }
    if clusters is not None and "sizes" in arrays:
        sizes = arrays["sizes"]
        if clusters.tolist() != list(range(n_clusters or len(clusters))):
            pairs = zip(clusters.tolist(), sizes.tolist(), strict=True)
            details["rows of large clusters"] = ", ".join(f"{c}: {n}" for c, n in pairs)
            sizes = None
    return {
        "sizes": sizes_of(sizes),
        "centroids": matrix_of(arrays.get("centroids"), ()),
        "told": details,
    }


def matrix_of(values: FloatArray | None, columns: tuple[str, ...]) -> Matrix | None:
    """Return centroids (k, m) as rows of numbers, with names where there are m of them."""
    if values is None or values.ndim != 2 or not values.size:
        return None
    names = columns if len(columns) == values.shape[1] else ()
    return Matrix(columns=names, rows=tuple(map(tuple, values.tolist())))


def sizes_of(sizes: IntArray | None) -> tuple[int, ...]:
    """Return the rows of each cluster; empty if they are not published."""
    return () if sizes is None else tuple(sizes.tolist())


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return published values as JSON values; the items of a table stand alone."""
    plain_values: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            plain_values |= {f"{name} {key}": item for key, item in value.items()}
        elif value is not None:
            plain_values[name] = value
    return plain_values
