"""The page docs/evidence.md: nothing but what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.evidence_fidelity import EXPONENT, LAYOUTS, PARTIES, WIDE

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
        *_bytes(),
        *_printed(
            "The papers' tables beside ours",
            "Those with options repeat less than their defaults do, so that the page is "
            "written in an hour. A command ends with 1 where a figure misses its "
            "bar, which few repeats or few rows make likelier.",
            measured["tables"],
        ),
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
        "Written by `make bench`; no figure on this page was typed. Who learns what, and "
        "the risks, are in [security](security.md) and each protocol's README."
    )
    yield "<!-- not run: takes half an hour -->\n```sh\nmake bench\n```"
    yield (
        f"Measured with {machine['processors']} processors and "
        f"{machine['memory_gib']} GiB of memory, {machine['system']}, Python "
        f"{machine['python']}. Release {release}. Libraries: {versions}. "
        "[benchmarks](../benchmarks/README.md) says where sets come from."
    )


# Fidelity


def _fidelity(measured: Measured) -> Iterator[str]:
    yield "## Fidelity"
    yield (
        "`python -m benchmarks.evidence_fidelity "
        f"--seeds {measured['seeds']} --rows {measured['rows']}`"
    )
    yield (
        "Adjusted Rand index between the labels and those of the same clustering of the "
        "pooled rows from the same start: 1 means that nothing was lost by not pooling. "
        f"Each is the mean of {measured['seeds']} splits, in brackets the least where it "
        f"differs, of at most {measured['rows']} rows of a set, with as many clusters as "
        "classes. Parameters are the defaults, but the exponent of fuzzy c-means is "
        f"{EXPONENT} on {WIDE} features and more, and `llf` has `small_cohorts: allow`. "
        "*One*: the run ended in a single cluster. Empty cells were not measured."
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
        "What a way minimises (inertia, its fuzzy form, distances to medoids; of `fccm` the "
        "criterion, turned over), over the same of the pooled method with ten starts: 1 is "
        "as good as a pooled analysis, more is worse. Median of the splits, in brackets the "
        "worst; after a slash the worst over the pooled method under the same rules, by "
        "which clusters of few rows stay (`llf` over rows) and dimensions are left out "
        "(`dc`). `python -m benchmarks.papers.quality_table` has more sets."
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


# Bytes


def _bytes() -> Iterator[str]:
    yield "## Bytes"
    yield (
        "What the party that sends most sends in a whole session, with envelopes to "
        "other parties, for the first split of the tables above. `benchmarks/evidence.json` "
        "has bytes and rounds of each set."
    )
    yield f"![Bytes that a party sends, by protocol](evidence/{PICTURES['bytes']})"


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


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
