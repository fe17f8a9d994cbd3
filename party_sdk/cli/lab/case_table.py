"""Format the results of cases as lines of a terminal: a table, and notes on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from coterie_pages.formatting import AUXILIARY
from party_sdk.cli.lab.cases import Document
from party_sdk.cli.terminal.output import align_columns
from party_sdk.cli.terminal.result_lines import one_cluster_warning

_LEFT_OUT_FIGURES: Final = AUXILIARY | {"clusters_with_rows", "n_iter", "converged"}
FIGURES_NOTE: Final = (
    "fidelity: agreement (adjusted Rand index) with pooled clustering from the same "
    "start; pooled agreement: the same index, with the best of ten pooled starts; "
    "objective ratio: the objective divided by that of the best start, 1 is as good"
)


def case_lines(cases: Sequence[Document]) -> Iterator[str]:
    """Yield a table with a line for each case and number of clusters.

    The line of the selected run is marked. It also shows the figures that describe the
    whole session.
    """
    finished = [case for case in cases if "lanes" in case]
    with_truth = any("truth" in case for case in finished)
    lanes = [lane for case in finished for lane in case["lanes"]]
    figures = list(
        dict.fromkeys(
            name
            for lane in lanes
            for name, value in lane.items()
            if value is not None and name not in _LEFT_OUT_FIGURES
        )
    )
    several_files = len({case.get("file") for case in cases}) > 1
    rows: list[list[str]] = []
    head: list[str] = []
    for case in finished:
        extras = _session_figures(case, with_truth=with_truth)
        head = ["case", "k", "", *figures, *extras]
        name = (
            f"{case['file']} {_case_name(case)}" if several_files else _case_name(case)
        )
        for number, lane in enumerate(case["lanes"]):
            k = lane["n_clusters"]
            is_chosen = k == case["chosen"]
            rows.append(
                [
                    name if number == 0 else "",
                    "" if k is None else str(k),
                    "*" if is_chosen else "",
                    *(_as_text(lane.get(figure)) for figure in figures),
                    *(extras.values() if is_chosen else [""] * len(extras)),
                ]
            )
    if rows:  # break titles into lines at their underscores
        words = [title.split("_") for title in head]
        height = max(map(len, words))
        columns = [
            [""] * (height - len(title_words)) + title_words for title_words in words
        ]
        titles = list(map(list, zip(*columns, strict=True)))
        yield from align_columns([*titles, *rows], are_numbers=True)
    for case in cases:
        if "error" in case:
            yield f"{case['file']} {_case_name(case)}: {case['error']}"


def _session_figures(case: Document, *, with_truth: bool) -> dict[str, str]:
    truth = {"ARI": _as_text(case.get("truth", {}).get("ARI"))} if with_truth else {}
    return {
        "fidelity": _as_text(case["fidelity"]),
        "pooled_agreement": _as_text(case["pooled_agreement"]),
        "objective_ratio": _as_text(case["objective_ratio"]),
        "ratio_same_rules": _as_text(case["objective_ratio_same_rules"]),
        **truth,
        "rounds": str(case["rounds"]),
        "bytes_sent": f"{case['sent_bytes']:,}",
        "analyst_seconds": f"{case['seconds']['analyst']:.3f}",
        "slowest_party's_seconds": f"{case['seconds']['slowest_party']:.3f}",
    }


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value)
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.2f}"


def _case_name(case: Document) -> str:
    return f"{case['protocol']} {case['layout']}"


def case_notes(
    cases: Sequence[Document], omissions: Sequence[Document]
) -> Iterator[str]:
    """Yield notes on the table, one per line.

    omissions: the cases that cannot run, with the reasons.
    """
    finished = [case for case in cases if "lanes" in case]
    rules = dict.fromkeys(case["chosen_by"] for case in finished if case["chosen_by"])
    if any(case["objective_ratio"] is not None for case in finished):
        yield f"{FIGURES_NOTE}; same rules: divided by that under the session's rules"
    if rules:
        yield f"* selected: the best by {' or '.join(rules)}"
    for case in finished:
        if case["no_clusters"]:
            yield one_cluster_warning(f"in {_case_name(case)} ")
    for case in finished:
        for sentence in case["warnings"]:
            yield f"warning: {_case_name(case)}: {sentence}"
    risks = [
        (f"{code}: {case['risks'][code]}", _case_name(case))
        for case in cases
        for code in case["risks_of_several_runs"]
    ]
    for sentence, names in _names_by_key(risks).items():
        yield f"several runs in one session bring a risk ({', '.join(names)}): {sentence}"
    reasons = [
        ((omission["protocol"], omission["reason"]), omission["layout"])
        for omission in omissions
    ]
    for (protocol, reason), layouts in _names_by_key(reasons).items():
        yield f"left out: {protocol} {', '.join(layouts)}: {reason}"


def _names_by_key(pairs: Sequence[tuple[Any, str]]) -> dict[Any, list[str]]:
    groups: dict[Any, list[str]] = {}
    for key, name in pairs:
        names = groups.setdefault(key, [])
        names += [name] if name not in names else []
    return groups
