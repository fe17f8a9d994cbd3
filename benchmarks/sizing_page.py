"""The page docs/sizing.md: arithmetic of the protocols, at speeds that were measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from analyst_service.engines.dask_engine import WORTH_SENDING
from clustering_protocols import catalogue
from clustering_protocols.common.limits import MANY_IN_A_GRAPH, N_REPRESENTATIVES
from clustering_protocols.contract.sizing import Extent, Needs
from clustering_protocols.terms.terms import Layout
from party_sdk.advice.sizing import duration, minutes_at, size

WORKERS: Final = 4
ROWS: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FEATURES, CLUSTERS, PARTIES, UPDATES = 16, 10, 4, 20
_ACROSS, _BESIDE, _BOTH = (
    Layout.lattice(PARTIES, 1),
    Layout.lattice(1, PARTIES),
    Layout.lattice(2, 2),
)

_LINEAR: Final = (
    "Everything grows with the rows and no faster. Many rows are read from disk block by "
    "block. The limits are the analyst's disk, and the largest upload that the service "
    "takes (`COTERIE_MAX_BODY_BYTES`)."
)
_SPECTRAL: Final = (
    f" `spectral` holds up to {MANY_IN_A_GRAPH:,} rows and their graph; of more, "
    f"{N_REPRESENTATIVES:,} means of small groups of them."
)


class Way(NamedTuple):
    """One table of the page."""

    protocol: str
    title: str
    layout: Layout
    values: Mapping[str, Any] = {}
    ends: str = ""


WAYS: Final = (
    Way("dc", "rows split", _ACROSS),
    Way("dc", "columns split", _BESIDE),
    Way(
        "dc",
        "rows and columns split",
        _BOTH,
        ends=_LINEAR + _SPECTRAL,
    ),
    Way(
        "fccm",
        "columns split",
        _BESIDE,
        ends="Every update carries a number for each object, cluster and start: rounds "
        "times bytes end it before memory does. Fewer starts (`n_init`) take less.",
    ),
    Way("llf", "rows split", _ACROSS),
    Way(
        "llf",
        "columns split",
        _BESIDE,
        ends="Where rows are split, messages do not depend on their number, and only "
        "the parties' own tables end it. Where columns are split every update carries "
        "a number for each row and cluster.",
    ),
    Way("omnifc", "distances between all rows", _ACROSS),
    Way(
        "omnifc",
        "distances to landmarks",
        _ACROSS,
        {"distances": "landmarks", "max_rows": 1_000_000},
    ),
    Way(
        "pqmds",
        "columns split",
        _BESIDE,
        ends=_LINEAR,
    ),
)


def render(measured: Mapping[str, Any]) -> str:
    """Return the whole page."""
    return "\n\n".join(_parts(measured)) + "\n"


def _parts(measured: Mapping[str, Any]) -> Iterator[str]:
    yield "# How large a session may be"
    yield "Written by `python -m benchmarks.sizing`; no figure on this page was typed."
    yield (
        f"Sessions of {PARTIES} parties, {FEATURES} features, {CLUSTERS} clusters and "
        "default parameters (with landmarks: `max_rows` 1,000,000). Bytes follow from the "
        "shapes of the messages; a test compares them with simulated sessions. Memory is "
        "a bound that the protocol states, without mapped files. Time is the processor "
        "time of the analyst and of the slowest party together, without network, disk "
        "and people. It is the protocol's work at a measured speed: one thread of a "
        f"machine with {measured['processors']} processors ({measured['machine']}, "
        f"Python {measured['python']}, {measured['date']}). It is extrapolated from one "
        "size, so take it for an order of magnitude. Where updates are rounds, "
        f"{UPDATES} of them are counted."
    )
    yield (
        f"The last column is computed, not measured: {WORKERS} workers of a Dask cluster "
        "take over what the analyst's steps do on blocks of rows. That is a share of the "
        f"work of {_shares(measured)}, and nothing of the others. Each worker is as fast "
        "as this processor. The time of sending is not counted; it is longer than work "
        f"of less than {WORTH_SENDING:g} s. What parties do at home stays as it is."
    )
    yield (
        "`coterie advise --rows N --columns M` and `coterie session create --rows N` say "
        "what is large of this before a session opens."
    )
    for protocol in dict.fromkeys(way.protocol for way in WAYS):
        yield f"## `{protocol}`"
        for way in (way for way in WAYS if way.protocol == protocol):
            yield f"**{way.title[0].upper()}{way.title[1:]}**"
            yield _table(measured, way)
            yield from _end(way)
    yield "## Memory that was measured"
    yield (
        "What Python and numpy allocated in the largest step, beside what the protocol "
        "states without the interpreter itself (268 MB)."
    )
    yield _memory(measured)


def _shares(measured: Mapping[str, Any]) -> str:
    """Return which share of the analyst's time workers can take over, by way."""
    return ", ".join(
        f"`{protocol}`, {name}: {each['in_blocks']:.0%}"
        for protocol, ways in measured["speeds"].items()
        for name, each in ways.items()
        if each["in_blocks"]
    )


def minutes_with_workers(needs: Needs, speed: Mapping[str, float]) -> float:
    """Return how long analyst and parties compute where workers take blocks over."""
    handed_out = speed["in_blocks"] * needs.analyst_work / speed["analyst"]
    saved = handed_out * (1 - 1 / WORKERS) if handed_out >= WORTH_SENDING else 0.0
    return minutes_at(needs, speed) - saved / 60


def _table(measured: Mapping[str, Any], way: Way) -> str:
    lines = [_line(measured, way, rows) for rows in ROWS]
    head = (
        "rows",
        "rounds",
        "a party sends",
        "files at the analyst",
        "memory, analyst",
        "memory, party",
        "time",
        f"with {WORKERS} workers",
    )
    return _grid(head, lines)


def _line(measured: Mapping[str, Any], way: Way, rows: int) -> list[str]:
    known = catalogue.protocol(way.protocol)
    params = catalogue.parse_params(
        way.protocol, {"n_clusters": CLUSTERS, **way.values}
    )
    extent = Extent(rows=rows, features=FEATURES, layout=way.layout, updates=UPDATES)
    needs = known.sizes().needs(params, extent)
    if needs is None:
        raise TypeError(f"{way.protocol} does not say what it needs.")
    speed = measured["speeds"].get(way.protocol, {}).get(needs.measured_as)
    most = known.sizes().most_rows(params, FEATURES)
    beyond = most is not None and rows > most
    took = [] if speed is None else [minutes_at, minutes_with_workers]
    return [
        f"{rows:,}" + " (beyond its end)" * beyond,
        str(needs.rounds),
        size(needs.sent),
        size(needs.kept),
        size(needs.analyst_memory),
        size(needs.party_memory),
        *(duration(minutes(needs, speed)) for minutes in took),
    ]


def _end(way: Way) -> Iterator[str]:
    known = catalogue.protocol(way.protocol)
    params = catalogue.parse_params(
        way.protocol, {"n_clusters": CLUSTERS, **way.values}
    )
    if way.ends:
        yield way.ends
    most = known.sizes().most_rows(params, FEATURES)
    if most is not None:
        yield (
            f"With the parameters of the table it takes {most:,} rows at most. "
            f"{known.sizes().beyond(params)}"
        )


def _memory(measured: Mapping[str, Any]) -> str:
    lines = [
        [
            f"`{protocol}`, {name}",
            f"{each['rows']:,}",
            *(
                size(each["memory"][key])
                for key in ("analyst", "analyst_stated", "party", "party_stated")
            ),
        ]
        for protocol, ways in measured["speeds"].items()
        for name, each in ways.items()
    ]
    head = ("way", "rows", "analyst", "stated", "party", "stated")
    return _grid(head, lines)


def _grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
