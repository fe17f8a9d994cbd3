"""The text and pictures of docs/evidence.md, its summary tables, and the one in README.

Pictures are SVG without dates, the same for the same figures.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from benchmarks.papers.baselines import OURS, SERVER_READS
from benchmarks.papers.cells import Row, has_too_many_outliers
from coterie_pages.formatting import format_number
from coterie_pages.svg import element, line, picture, round_ticks, standalone, text

TABLES = ("dc", "llf", "fccm", "omnifc", "pqmds")
PICTURES = {
    "fidelity": "Fidelity by protocol, method and set",
    "objective": "Objective ratio by protocol, method and set",
    "bytes": "Bytes and rounds by protocol and method",
    "peers": "Bytes and seconds of Coterie and its peers",
}
SPLITS = {
    "horizontal": "rows",
    "vertical": "columns",
    "mixed": "rows and columns",
}
Measured = Mapping[str, Sequence[Row]]
"""The lines of each CSV file under docs/evidence, by the name of the file."""


def summarise(measured: Measured) -> dict[str, list[Row]]:
    """Return the page's tables that are computed from the measured files, by name."""
    beside = list(_beside(measured))
    return {
        "summary": [
            _protocol_row(protocol, split, measured["fidelity"])
            for protocol, split in dict.fromkeys(
                (row["protocol"], row["partitioning"]) for row in measured["fidelity"]
            )
        ],
        "papers": [_paper_row(name, measured[name]) for name in TABLES],
        "beside": beside,
        "servers": [_server(name, beside) for name in SERVER_READS],
    }


def _beside(measured: Measured) -> Iterator[Row]:
    """Yield each cell of a baseline beside ours of the same table, set and measure."""
    ours = {
        (part, row["table"], row["set"], row["quantity"]): row
        for part in TABLES
        for row in measured[part]
    }
    for row in measured["baselines"]:
        baseline, _, rest = row["quantity"].partition(", ")
        part, quantity = OURS[baseline]
        metric = rest.rpartition(", ")[2]
        quantity = quantity.format(metric=metric, table=row["table"])
        own = ours.get((part, row["table"], row["set"], quantity))
        if own is None:
            continue
        lead = float(own["ours"]) - float(row["ours"])
        spread = 2 * max(float(own["spread"]), float(row["spread"]))
        verdict = "alike" if abs(lead) <= spread else "worse"
        yield {
            "baseline": baseline,
            **{name: row[name] for name in ("table", "set", "quantity", "paper")},
            "baseline here": row["ours"],
            "baseline spread": row["spread"],
            "is near the paper": str(row["verdict"] == "near").lower(),
            "ours": own["ours"],
            "ours spread": own["spread"],
            "ours is": "better" if verdict == "worse" and lead > 0 else verdict,
        }


def _server(baseline: str, beside: Sequence[Row]) -> Row:
    own = [row for row in beside if row["baseline"] == baseline]
    verdicts = Counter(row["ours is"] for row in own)
    return {
        "baseline": baseline,
        "cells": str(len(own)),
        "near": str(sum(row["is near the paper"] == "true" for row in own)),
        "better": str(verdicts["better"]),
        "worse": str(verdicts["worse"]),
        "reads": SERVER_READS[baseline],
    }


def _protocol_row(protocol: str, split: str, rows: Sequence[Row]) -> Row:
    own = [r for r in rows if (r["protocol"], r["partitioning"]) == (protocol, split)]
    ended = [row for row in own if not row["refused"]]
    several = [row for row in ended if int(row["clusters"]) > 1]
    compared = [row for row in several if row["ratio"]]

    def median_of(lines: Sequence[Row], figure: str) -> str:
        return f"{median(float(x[figure]) for x in lines):.3f}" if lines else ""

    return {
        "protocol": protocol,
        "split": SPLITS[split],
        "methods": str(len({row["way"] for row in own})),
        "results": str(len(several)),
        "one cluster": str(len(ended) - len(several)),
        "refused": str(len(own) - len(ended)),
        "fidelity": median_of(several, "mean"),
        "worst fidelity": f"{min(float(row['least']) for row in several):.3f}",
        "ratio": median_of(compared, "ratio"),
        "worst ratio": f"{max(float(r['worst_ratio']) for r in compared):.3f}"
        if compared
        else "",
    }


def _paper_row(name: str, rows: Sequence[Row]) -> Row:
    found = Counter(row["verdict"] for row in rows)
    counts = {v: str(found[v]) for v in ("near", "shown", "stated", "beyond")}
    judged = sum(found.values()) - found["context"]
    return {"protocol": name, "cells": str(judged), **counts}


def table(rows: Sequence[Row], columns: Mapping[str, str]) -> str:
    """Return a Markdown table of some columns, each under its title."""
    lines = [list(columns.values()), ["---"] * len(columns)]
    lines += [[row[column] for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fidelity_table(measured: Measured) -> str:
    """Return fidelity and objective ratio by protocol and split, for page and README."""
    rows = [
        row
        | {
            "protocol": f"`{row['protocol']}`",
            "fidelity": _with_worst(row, "fidelity"),
            "ratio": _with_worst(row, "ratio"),
        }
        for row in measured["summary"]
    ]
    names = ("protocol", "split", "results", "one cluster", "refused")
    worst = {"fidelity": "fidelity (worst)", "ratio": "objective ratio (worst)"}
    titles = {name: name for name in names} | worst
    return table(rows, titles)


def _with_worst(row: Row, figure: str) -> str:
    return f"{row[figure]} ({row[f'worst {figure}']})" if row[figure] else "–"


def render(measured: Measured) -> str:
    """Return the whole page."""
    sections = (_head, _fidelity, _papers, _baselines, _peers)
    parts = [part for section in sections for part in section(measured)]
    return "\n\n".join(parts) + "\n"


def _picture(name: str) -> str:
    return f"![{PICTURES[name]}](evidence/{name}.svg)"


def _conditions(measured: Measured) -> dict[str, str]:
    """Return what the figures were measured with, by name."""
    return {row["name"]: row["value"] for row in measured["conditions"]}


def _head(measured: Measured) -> Iterator[str]:
    at = _conditions(measured)
    libraries = ", ".join(
        f"{name} {at[name]}" for name in ("numpy", "scipy", "scikit-learn")
    )
    yield "# Evidence"
    yield (
        "This page compares Coterie with pooled clustering, the papers of its protocols, "
        "their baselines, and other tools."
    )
    yield "<!-- not run: takes five minutes -->\n```sh\npython -m benchmarks.evidence --check\n```"
    yield (
        "This repeats the first draw of every cell of the papers and baselines, and "
        "checks the page, its pictures and its numbers against the files in "
        "[evidence/](evidence/), which `make bench` writes. "
        f"We used {at['processors']} processors, {at['memory_gib']} GiB of memory, "
        f"{at['system']}, Python {at['python']}, Coterie {at['coterie']}, {libraries}. "
        "[Benchmarks](../benchmarks/README.md) says where the data sets come from."
    )


def _fidelity(measured: Measured) -> Iterator[str]:
    at = _conditions(measured)
    yield "## Fidelity"
    yield (
        f"Each method clusters at most {at['rows']} rows of each of {at['sets']} sets, split "
        f"between {at['parties']} parties in {at['splits']} ways, into as many clusters as "
        "the set has classes. *Fidelity* is the adjusted Rand index (ARI) between its labels "
        "and those of pooled clustering from the same start. Figures are medians over "
        "sets; *worst* is the worst of all draws. Only methods that reduce dimensions "
        "locally (`dc` by default, `pqmds`) differ from pooled clustering. `mixture` "
        "refuses sets whose rows its totals would reveal. "
        "[fidelity.csv](evidence/fidelity.csv) has every set."
    )
    yield fidelity_table(measured)
    yield _picture("fidelity")
    yield "## Objective"
    yield (
        "The objective ratio is the value that a method minimises, divided by that of "
        "the best of ten pooled starts; above 1 is worse."
    )
    yield _picture("objective")
    yield "## Bytes and rounds"
    yield (
        "The picture shows the bytes that the busiest party sends, divided by the bytes "
        "of the table, and the median number of rounds."
    )
    yield _picture("bytes")


def _papers(measured: Measured) -> Iterator[str]:
    yield "## The papers' tables"
    yield (
        "A cell is *near* if it differs from the paper by at most two spreads (the larger "
        "standard deviation, ours or the paper's) plus half a printed digit. Otherwise "
        "its cause is *shown* by another cell that is near, or only *stated*. A cell "
        "without a cause is *beyond*; by chance, 5 % are. Each file has every cell's "
        "draws and cause."
    )
    unexplained = [f"`{n}`" for n in TABLES if has_too_many_outliers(measured[n])]
    if unexplained:
        yield (
            f"More cells are beyond in {' and '.join(unexplained)}, whose papers publish "
            "neither starts nor samples."
        )
    rows = [
        row | {"protocol": f"[`{row['protocol']}`](evidence/{row['protocol']}.csv)"}
        for row in measured["papers"]
    ]
    titles = ("protocol", "cells", "near", "shown", "stated", "beyond")
    yield table(rows, {title: title for title in titles})
    causes: dict[str, list[str]] = defaultdict(list)
    for name in TABLES:
        for row in measured[name]:
            if row["verdict"] in {"shown", "stated"}:
                causes[row["cause"]].append(name)
    yield "Causes:"
    yield "\n".join(
        f"- {', '.join(f'`{name}`' for name in dict.fromkeys(names))}: {sentence}"
        for sentence, names in causes.items()
    )


def _baselines(measured: Measured) -> Iterator[str]:
    yield "## The papers' baselines"
    yield (
        "We ran the papers' baselines on the papers' tables; "
        "[beside.csv](evidence/beside.csv) has every cell."
    )
    titles = {"baseline": "baseline", "cells": "cells", "near": "near its figures",
              "better": "ours is better", "worse": "ours is worse",
              "reads": "what its server reads"}  # fmt: skip
    yield table(measured["servers"], titles)
    yield (
        "*Better* and *worse*: agreement with the classes differs by more than two spreads. "
        "A test rebuilds every row from what FedSC's server holds. "
        "FedMAvg and DP-VFC are not run: neither has public code or a complete description."
    )


def _peers(measured: Measured) -> Iterator[str]:
    at = _conditions(measured)
    yield "## Peers"
    yield (
        "`python -m benchmarks.evidence --only peers` runs each tool on the same table "
        f"({at['peer_rows']} rows × {at['peer_columns']} columns, {at['peer_parties']} "
        f"parties, {at['peer_clusters']} clusters), in its own environment. Every tool "
        f"except diffprivlib performs {at['peer_updates']} Lloyd updates from the same "
        "start. Bytes are counted on the tool's loopback network, so a tool in one "
        "process sends none. *Ratio* (of inertia) and *ARI* (of labels) compare with pooled "
        "scikit-learn from the same start. Seconds include starting the tool."
    )
    titles = {"peer": "tool", "seconds": "seconds", "cpu": "CPU seconds",
              "bytes": "bytes", "rounds": "rounds", "ratio": "ratio", "ari": "ARI",
              "holds": "the coordinator holds at the end"}  # fmt: skip
    yield table(measured["peers"], titles)
    yield _picture("peers")


# Numbers

_NOT_PROSE = re.compile(r"`[^`]*`|\]\([^)]*\)|```.*?```|<!--.*?-->", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def missing_numbers(page: str, measured: Measured) -> set[str]:
    """Return the numbers on a page that are in no file, except the 1 of "above 1"."""
    stored = {
        number
        for rows in measured.values()
        for row in rows
        for value in row.values()
        for number in _NUMBER.findall(value)
    }
    return set(_NUMBER.findall(_NOT_PROSE.sub("", page))) - stored - {"1"}


# Pictures

_LABELS = {
    "fidelity": "fidelity: a dot is a set",
    "objective": "objective over pooled: a dot is the median split of a set",
    "bytes": "bytes of the busiest party over bytes of the table: a dot is a set",
    "peers": "bytes on the wire; beside the name the seconds that it took",
}
_WIDTH, _LEFT, _RIGHT, _STRIP, _FOOT = 800.0, 360.0, 16.0, 22.0, 46.0


def draw_pictures(measured: Measured) -> dict[str, str]:
    """Return the text of each picture by its name."""
    rows = [row for row in measured["fidelity"] if not row["refused"]]
    several = [row for row in rows if int(row["clusters"]) > 1]
    compared = [row for row in several if row["ratio"]]
    groups = {
        "fidelity": _by_way(several, lambda row: float(row["mean"])),
        "objective": _by_way(compared, lambda row: float(row["ratio"])),
        "bytes": _by_way(rows, _share_of_bytes, with_rounds=True),
        "peers": {
            f"{row['peer']}, {row['seconds']} s": [float(row["bytes"])]
            for row in measured["peers"]
            if row["bytes"] not in {"–", "0"}
        },
    }
    return {name: standalone(_strips(name, group)) for name, group in groups.items()}


def _share_of_bytes(row: Row) -> float:
    return int(row["sent_bytes"]) / (8 * int(row["rows"]) * int(row["features"]))


def _by_way(
    rows: Sequence[Row], value: Callable[[Row], float], *, with_rounds: bool = False
) -> dict[str, list[float]]:
    ways: dict[str, list[Row]] = {}
    for row in rows:
        split = SPLITS[row["partitioning"]]
        ways.setdefault(f"{row['protocol']} {row['way']}, {split}", []).append(row)
    labels = {
        way: f", {median(int(row['rounds']) for row in own):.0f} rounds"
        for way, own in ways.items()
    }
    return {
        way + (labels[way] if with_rounds else ""): [value(row) for row in own]
        for way, own in ways.items()
    }


class _Scale(NamedTuple):
    """A map from values to places, along logarithms if `logarithmic`."""

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return the horizontal position of a value."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = np.log10([low, high, value])
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * float((at - low) / (high - low))

    def ticks(self) -> list[float]:
        """Return round values: powers of ten along logarithms of a decade or more."""
        ends = np.log10([self.low, self.high]) if self.logarithmic else np.zeros(2)
        if ends[1] - ends[0] < 1:
            return round_ticks(self.low, self.high, count=6)
        return [10.0**n for n in range(int(np.ceil(ends[0])), int(ends[1]) + 1)]


def _strips(name: str, groups: Mapping[str, Sequence[float]]) -> Markup:
    """Return a picture: a strip per group with a dot per value, a bar at the mean."""
    values = [value for group in groups.values() for value in group]
    low, high = min(values), max(values)
    margin = 0.03 * (high - low)
    scale = _Scale(low / 1.1, high * 1.1, logarithmic=True)
    if name == "fidelity":
        scale = _Scale(low - margin, high + margin)
    bottom = _STRIP * len(groups)
    parts = [part for value in scale.ticks() for part in _tick(scale, value, bottom)]
    for place, (title, group) in enumerate(groups.items()):
        middle = _STRIP * (place + 0.5)
        parts.append(text(_LEFT - 10, middle + 4, title, anchor="end"))
        offsets = np.linspace(-0.18, 0.18, len(group)) if len(group) > 1 else [0.0]
        parts += [
            element(
                "circle",
                cx=scale.place(value),
                cy=middle + _STRIP * float(offset),
                r=3.0,
                class_="point c0",
            )
            for value, offset in zip(group, offsets, strict=True)
        ]
        mean = scale.place(float(np.mean(group)))
        parts.append(line(mean, middle - 8, mean, middle + 8, class_="ring"))
    centre = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(text(centre, bottom + 38, _LABELS[name], anchor="middle"))
    told = f"{len(groups)} lines of dots; a file beside the page has the values."
    return picture(name, PICTURES[name], told, (_WIDTH, bottom + _FOOT), parts)


def _tick(scale: _Scale, value: float, bottom: float) -> Iterator[Markup]:
    x = scale.place(value)
    yield line(x, 0.0, x, bottom, class_="grid")
    yield text(x, bottom + 18, format_number(value), anchor="middle")
