"""The page docs/evidence.md: nothing but what was measured and what protocols say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.evidence_fidelity import EXPONENT, LAYOUTS, PARTIES, WIDE
from clustering_protocols import catalogue
from clustering_protocols.common.suitability import Method
from clustering_protocols.contract import ClusteringProtocol
from clustering_protocols.terms.risks import worst_first

SPLITS = {
    "horizontal": f"rows split over {PARTIES} parties",
    "vertical": f"columns split over {PARTIES} parties",
    "mixed": "two row groups × two column groups",
}
PICTURES = {
    "horizontal": "fidelity-horizontal.svg",
    "vertical": "fidelity-vertical.svg",
    "mixed": "fidelity-mixed.svg",
    "bytes": "bytes.svg",
}

Measured = Mapping[str, Any]
Row = Mapping[str, Any]


def render(measured: Measured) -> str:
    """Return the whole page."""
    parts = [
        *_head(measured),
        *_fidelity(measured),
        *_objectives(measured),
        *_bytes(measured),
        *_printed(
            "The papers' tables beside ours",
            "Those with options repeat less than their defaults do, so that the page is "
            "written in an hour. A command ends with 1 where a figure misses its "
            "bar, which few repeats or few rows make likelier.",
            measured["tables"],
        ),
        *_learns(),
        *_printed(
            "Speed",
            "Ratios to named primitives of the same run; goals stand beside them. Other "
            "work on the machine moves them.",
            measured["speed"],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _head(measured: Measured) -> Iterator[str]:
    machine = measured["machine"]
    libraries = dict(machine["versions"])
    release = libraries.pop("coterie")
    versions = ", ".join(f"{name} {v}" for name, v in libraries.items())
    yield "# Evidence"
    yield (
        "Written by `make bench`; no figure on this page was typed. It is what these "
        "commands print, on one machine."
    )
    yield "<!-- not run: takes half an hour -->\n```sh\nmake bench\n```"
    yield (
        f"Measured with {machine['processors']} processors and "
        f"{machine['memory_gib']} GiB of memory, {machine['system']}, Python "
        f"{machine['python']}. Release {release}. Libraries: {versions}. "
        "Sets that scikit-learn does not bundle are taken where they are found "
        "([benchmarks](../benchmarks/README.md))."
    )


# Fidelity


def _fidelity(measured: Measured) -> Iterator[str]:
    yield "## Fidelity"
    yield (
        "`python -m benchmarks.evidence_fidelity "
        f"--seeds {measured['seeds']} --rows {measured['rows']}`"
    )
    yield (
        "The figures are adjusted Rand indices between the labels and those of the same "
        "clustering on the pooled rows. Both begin at the same start, and 1 means that "
        "nothing was lost by not pooling. They judge what the federation cost, not the "
        f"clustering. Each is the mean over {measured['seeds']} splits, in brackets the "
        f"least where it differs. Of a set at most {measured['rows']} rows count, with as "
        "many clusters as classes. Parameters are the defaults, with two exceptions. The "
        f"exponent of fuzzy c-means on {WIDE} features and more is {EXPONENT}, and `llf` "
        "has `small_cohorts: allow`, since sets are small. *One* marks runs that ended in "
        "a single cluster, whose agreement says nothing. Empty cells were not measured."
    )
    for partitioning in LAYOUTS:
        rows = [r for r in measured["fidelity"] if r["partitioning"] == partitioning]
        yield f"### {partitioning.capitalize()}: {SPLITS[partitioning]}"
        yield (
            f"![Fidelity by protocol and set, {partitioning}]"
            f"(evidence/{PICTURES[partitioning]})"
        )
        yield _by_set(rows, _fidelity_cell)
        yield from _refusals(rows)


def _objectives(measured: Measured) -> Iterator[str]:
    known = [row for row in measured["fidelity"] if "ratio" in row]
    if not known:
        return
    yield "## Objective ratio"
    yield (
        "What a way minimises, over the same of the pooled method with ten starts. That "
        "is inertia, its fuzzy form, or distances to medoids; `fccm` maximises its "
        "criterion, which is turned over. It judges the result: 1 is as good as a pooled analysis, "
        "more is worse. Fidelity compares with one start, which both runs share. Median "
        "of the splits above, in brackets the worst. After a slash stands the worst over "
        "the pooled method under the same rules, where it is another. By these, clusters "
        "of few rows stay (`llf` over rows), and dimensions are left out (`dc`). The same "
        "command; `python -m benchmarks.quality_table` has more sets."
    )
    for partitioning in LAYOUTS:
        rows = [row for row in known if row["partitioning"] == partitioning]
        if rows:
            yield f"**{partitioning.capitalize()}**"
            yield _by_set(rows, _ratio_cell)


def _ratio_cell(row: Row) -> str:
    median, worst = f"{row['ratio']:.3f}", f"{row['worst_ratio']:.3f}"
    same = f"{row['worst_ratio_same_rules']:.3f}"
    cell = median if median == worst else f"{median} ({worst})"
    return cell if same == worst else f"{cell} / {same}"


def _by_set(rows: Sequence[Row], cell: Any) -> str:
    """Return a table with a line per set and a column per way."""
    methods = list(dict.fromkeys(f"{r['protocol']} {r['way']}" for r in rows))
    sets = list(dict.fromkeys(r["set"] for r in rows))
    cells = {(r["set"], f"{r['protocol']} {r['way']}"): cell(r) for r in rows}
    sizes = {r["set"]: f"{r['rows']} × {r['features']}" for r in rows}
    lines = [
        [f"{name} ({sizes[name]})", *(cells.get((name, way), "") for way in methods)]
        for name in sets
    ]
    return _table(["set", *methods], lines)


def _fidelity_cell(row: Row) -> str:
    if "refused" in row:
        return "refused"
    if row["clusters"] < 2:
        return "*one*"
    mean, least = f"{row['mean']:.3f}", f"{row['least']:.3f}"
    return mean if mean == least else f"{mean} ({least})"


def _refusals(rows: Sequence[Row]) -> Iterator[str]:
    """Yield why cases were refused, each reason once."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if "refused" in row:
            reasons.setdefault(f"{row['protocol']}: {row['refused']}", []).append(
                row["set"]
            )
    for reason, sets in reasons.items():
        yield f"Refused on {', '.join(dict.fromkeys(sets))}. {reason}"


# Bytes and rounds


def _bytes(measured: Measured) -> Iterator[str]:
    yield "## Bytes and rounds"
    yield (
        "The party that sends most sends so many kilobytes in a whole session, with "
        "envelopes to other parties. Beside them stands the number of rounds. It is the "
        "first split of the table above, and the same command."
    )
    yield f"![Bytes that a party sends, by protocol](evidence/{PICTURES['bytes']})"
    for partitioning in LAYOUTS:
        rows = [r for r in measured["fidelity"] if r["partitioning"] == partitioning]
        yield f"**{partitioning.capitalize()}**"
        yield _by_set(rows, _bytes_cell)


def _bytes_cell(row: Row) -> str:
    if "refused" in row:
        return "refused"
    return f"{row['sent_bytes'] / 1000:,.0f} kB, {row['rounds']}"


# What benchmarks print


def _printed(title: str, text: str, found: Measured) -> Iterator[str]:
    yield f"## {title}"
    yield text
    for name, each in found.items():
        yield f"### `{name}`"
        if "left_out" in each:
            yield f"`{each['command']}`: left out. {each['left_out']}"
            continue
        if "note" in each:
            yield f"`{each['command']}`. {each['note']}"
        else:
            yield f"`{each['command']}`, which ended with {each['exit']}:"
        lines = [line.rstrip() for line in each["output"].splitlines()]
        yield "\n".join(["```text", *lines, "```"])


# Who learns what


def _learns() -> Iterator[str]:
    yield "## Who learns what"
    yield (
        "This is what the protocols' own classes say, with the risk codes that the "
        f"defaults have with {PARTIES} parties. A party stops unless it accepts each by name."
    )
    for name, known in catalogue.catalogue().items():
        if not known.methods:
            continue
        yield f"### `{name}`: {known.title[0].lower()}{known.title[1:]}"
        yield _table(
            ["who", "learns"], [[who, what] for who, what in known.learns.items()]
        )
        yield _table(
            ["way", "split", "analyst can work out", "with one party", "risk codes"],
            [_way_line(name, known, *each) for each in _splits(known)],
        )
        known_risks = worst_first(catalogue.known_risks(name)).items()
        yield "\n".join(f"- `{code}`: {risk.sentence}" for code, risk in known_risks)


def _splits(known: ClusteringProtocol[Any]) -> Iterator[tuple[Method, str]]:
    for way in known.methods:
        for partitioning in way.partitionings:
            yield way, partitioning


def _way_line(
    name: str, known: ClusteringProtocol[Any], way: Method, partitioning: str
) -> list[str]:
    params = catalogue.parse_params(name, way.parameters(3))
    codes = known.risks_of(params, LAYOUTS[partitioning])
    return [
        way.name,
        partitioning,
        way.analyst_sees.sentence,
        way.exposure_with_one_party.sentence,
        ", ".join(f"`{code}`" for code in codes),
    ]


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
