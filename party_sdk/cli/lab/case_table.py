"""What comes of cases, as lines of a terminal: a table, and what has to be said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from coterie_pages.formatting import AUXILIARY
from party_sdk.cli.lab.cases import Document
from party_sdk.cli.terminal.output import align_columns
from party_sdk.cli.terminal.result_lines import no_clusters

_BESIDE: Final = AUXILIARY | {"clusters_with_rows", "n_iter", "converged"}
THE_FIGURES: Final = (
    "fidelity: agreement (adjusted Rand index) with pooled clustering from the same "
    "start, what not pooling cost; pooled agreement: with the best of ten pooled starts; "
    "objective ratio: over that of these, 1 is as good"
)


def lines(cases: Sequence[Document]) -> Iterator[str]:
    """Yield a table: a line for each case and number of clusters, the chosen one marked.

    What is told of a case (fidelity, costs) stands beside the run that counts.
    """
    done = [case for case in cases if "lanes" in case]
    with_truth = any("truth" in case for case in done)
    lanes = [lane for case in done for lane in case["lanes"]]
    figures = list(
        dict.fromkeys(
            name
            for lane in lanes
            for name, value in lane.items()
            if value is not None and name not in _BESIDE
        )
    )
    several_files = len({case.get("file") for case in cases}) > 1
    rows: list[list[str]] = []
    head: list[str] = []
    for case in done:
        beside = _beside_chosen(case, with_truth=with_truth)
        head = ["case", "k", "", *figures, *beside]
        name = f"{case['file']} {_name(case)}" if several_files else _name(case)
        for number, lane in enumerate(case["lanes"]):
            k = lane["n_clusters"]
            is_chosen = k == case["chosen"]
            rows.append(
                [
                    name if number == 0 else "",
                    "" if k is None else str(k),
                    "*" if is_chosen else "",
                    *(_number(lane.get(figure)) for figure in figures),
                    *(beside.values() if is_chosen else [""] * len(beside)),
                ]
            )
    if rows:  # the names at the top break at their underscores
        words = [title.split("_") for title in head]
        height = max(map(len, words))
        columns = [[""] * (height - len(each)) + each for each in words]
        titles = list(map(list, zip(*columns, strict=True)))
        yield from align_columns([*titles, *rows], are_numbers=True)
    for case in cases:
        if "error" in case:
            yield f"{case['file']} {_name(case)}: {case['error']}"


def _beside_chosen(case: Document, *, with_truth: bool) -> dict[str, str]:
    """Return what is told of a case beside the run that counts."""
    truth = {"ARI": _number(case.get("truth", {}).get("ARI"))} if with_truth else {}
    return {
        "fidelity": _number(case["fidelity"]),
        "pooled_agreement": _number(case["pooled_agreement"]),
        "objective_ratio": _number(case["objective_ratio"]),
        "ratio_same_rules": _number(case["objective_ratio_same_rules"]),
        **truth,
        "rounds": str(case["rounds"]),
        "bytes_sent": f"{case['sent_bytes']:,}",
        "analyst_seconds": f"{case['seconds']['analyst']:.3f}",
        "slowest_party's_seconds": f"{case['seconds']['slowest_party']:.3f}",
    }


def _number(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value)
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.2f}"


def _name(case: Document) -> str:
    return f"{case['protocol']} {case['layout']}"


def notes(cases: Sequence[Document], others: Sequence[Document]) -> Iterator[str]:
    """Yield what has to be said of the table, a line each.

    others: what was left out, with its reason.
    """
    done = [case for case in cases if "lanes" in case]
    rules = dict.fromkeys(case["chosen_by"] for case in done if case["chosen_by"])
    if any(case["objective_ratio"] is not None for case in done):
        yield f"{THE_FIGURES}; same rules: over pooled clustering that obeys the session's"
    if rules:
        yield f"* the run that counts: the best by {' or '.join(rules)}"
    for case in done:
        if case["no_clusters"]:
            yield no_clusters(f"in {_name(case)} ")
    for case in done:
        for sentence in case["warnings"]:
            yield f"warning: {_name(case)}: {sentence}"
    risks = [
        (f"{code}: {case['risks'][code]}", _name(case))
        for case in cases
        for code in case["risks_of_several_runs"]
    ]
    for said, names in _group(risks).items():
        yield f"several runs in one session bring a risk ({', '.join(names)}): {said}"
    left = [((each["protocol"], each["reason"]), each["layout"]) for each in others]
    for (protocol, reason), layouts in _group(left).items():
        yield f"left out: {protocol} {', '.join(layouts)}: {reason}"


def _group(pairs: Sequence[tuple[Any, str]]) -> dict[Any, list[str]]:
    """Return the names of each key, each once, in their order."""
    found: dict[Any, list[str]] = {}
    for key, name in pairs:
        names = found.setdefault(key, [])
        names += [name] if name not in names else []
    return found
