"""The page docs/evidence.md and the files under docs/evidence that it links to."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
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
COLUMNS = (
    *("partitioning", "protocol", "way", "set", "rows", "features", "clusters"),
    *("mean", "least", "ratio", "worst_ratio", "worst_ratio_same_rules"),
    *("rounds", "sent_bytes", "refused"),
)

Measured = Mapping[str, Any]
Row = Mapping[str, Any]


def files(measured: Measured) -> dict[str, str]:
    """Return the texts of the files beside the page, by name."""
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(measured["fidelity"])
    outputs = {
        f"{name}-tables.txt": f"$ {each['command']}\n{each['output']}\n"
        for name, each in measured["tables"].items()
        if "output" in each
    }
    return {"fidelity.csv": table.getvalue(), **outputs}


def render(measured: Measured) -> str:
    """Return the whole page."""
    return "\n\n".join([*_head(measured), *_fidelity(measured), *_printed(measured)])


def _head(measured: Measured) -> Iterator[str]:
    machine = measured["machine"]
    libraries = dict(machine["versions"])
    release = libraries.pop("coterie")
    versions = ", ".join(f"{name} {v}" for name, v in libraries.items())
    yield "# Evidence"
    yield (
        "`make bench` writes this page and the files that it links to. [Choosing]"
        "(choosing.md) says which protocol fits which study, and [security](security.md) "
        "who learns what."
    )
    yield "<!-- not run: takes half an hour -->\n```sh\nmake bench\n```"
    yield (
        f"Measured with {machine['processors']} processors and "
        f"{machine['memory_gib']} GiB of memory, {machine['system']}, Python "
        f"{machine['python']}, Coterie {release}, {versions}. "
        "[Benchmarks](../benchmarks/README.md) says where the data sets come from."
    )


def _fidelity(measured: Measured) -> Iterator[str]:
    yield "## Fidelity and objective ratio"
    yield (
        "`python -m benchmarks.evidence_fidelity "
        f"--seeds {measured['seeds']} --rows {measured['rows']}` clusters at most "
        f"{measured['rows']} rows of each data set into as many clusters as it has "
        f"classes, with {measured['seeds']} splits among the parties. Parameters are the "
        f"defaults, but fuzzy c-means has an exponent of {EXPONENT} from {WIDE} features "
        "on, and `llf` has `small_cohorts: allow`."
    )
    yield (
        "*Fidelity* is the adjusted Rand index between the labels and those of the same "
        "clustering of the pooled rows from the same start: 1 means that nothing was lost "
        "by not pooling. *Objective ratio* is what the method minimises (inertia, its fuzzy "
        "form, distances to medoids; the inverse of the criterion for `fccm`), divided by "
        "the same of the pooled method with ten starts: above 1 is worse than pooled. Each "
        "cell has the median over the data sets, and in brackets the worst split of any "
        "set. [fidelity.csv](evidence/fidelity.csv) has every set, the rounds, the bytes, "
        "and the reasons of refusals; there `worst_ratio_same_rules` compares with a pooled "
        "method that leaves out the same dimensions (`dc`) or keeps the same small clusters "
        "in place (`llf`)."
    )
    for partitioning in LAYOUTS:
        rows = [r for r in measured["fidelity"] if r["partitioning"] == partitioning]
        yield f"### {partitioning.capitalize()}: {SPLITS[partitioning]}"
        yield (
            f"![Fidelity by protocol and set, {partitioning}]"
            f"(evidence/{PICTURES[partitioning]})"
        )
        yield _summary(rows)
    yield "## Bytes"
    yield (
        "Bytes that the busiest party sends in a whole session, with envelopes to other "
        "parties."
    )
    yield f"![Bytes that a party sends, by protocol](evidence/{PICTURES['bytes']})"


def _summary(rows: Sequence[Row]) -> str:
    """Return a table with a line for each way."""
    ways = defaultdict(list)
    for row in rows:
        ways[row["protocol"], row["way"]].append(row)
    head = ("protocol", "method", "sets", "one cluster", "refused", "fidelity", "ratio")
    lines = [head, ("---",) * len(head)]
    for (protocol, way), of_way in ways.items():
        ended = [row for row in of_way if "refused" not in row]
        several = [row for row in ended if row["clusters"] > 1]
        compared = [row for row in several if "ratio" in row]
        lines.append(
            (
                f"`{protocol}`",
                way,
                str(len(of_way)),
                str(len(ended) - len(several)),
                str(len(of_way) - len(ended)),
                _cell(several, "mean", "least", min),
                _cell(compared, "ratio", "worst_ratio", max),
            )
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(rows: Sequence[Row], figure: str, worst: str, extreme: Any) -> str:
    if not rows:
        return ""
    middle = median(row[figure] for row in rows)
    return f"{middle:.3f} ({extreme(row[worst] for row in rows):.3f})"


def _printed(measured: Measured) -> Iterator[str]:
    yield "## The papers' tables beside ours"
    yield (
        "Commands with options repeat less than by default; one that ends with 1 missed "
        "a goal, which is likelier with few repeats. `python -m benchmarks.speed` prints "
        "speeds beside their goals."
    )
    lines = ["| command | exit code | output |", "|---|---|---|"]
    notes = []
    for name, each in measured["tables"].items():
        file = f"{name}-tables.txt"
        output = each.get("left_out") or f"[{file}](evidence/{file})"
        lines.append(f"| `{each['command']}` | {each.get('exit', '')} | {output} |")
        notes += [f"`{file}`: {each['note']}"] if "note" in each else []
    yield "\n".join(lines)
    yield from notes
