"""What comes of cases for people: a table of text, and one case at length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from clustering_protocols.numerics.profiles import Profile
from party_sdk.cli.lab.cases import (
    CaseFailure,
    CaseResult,
    LeftOut,
    case_of,
    document,
    read,
)
from party_sdk.cli.options.release import profile_lines
from party_sdk.cli.terminal.run_table import known_figures, no_clusters, table_lines
from party_sdk.lab import Lattice, SimulatedSession
from party_sdk.results.label_files import write_labels
from party_sdk.tables import How

_COSTS: Final = ("rounds", "bytes_sent", "analyst_seconds", "slowest_party's_seconds")
_OF_POOLED: Final = (
    "fidelity",
    "pooled_agreement",
    "objective_ratio",
    "ratio_same_rules",
)

THE_FIGURES: Final = (
    "fidelity: agreement (adjusted Rand index) with pooled clustering from the same "
    "start, what not pooling cost; pooled agreement: with the best of ten pooled starts; "
    "objective ratio: over that of these, 1 is as good"
)

Cells = Sequence[str]


def shown_figures(results: Sequence[CaseResult]) -> list[str]:
    """Return the names of the figures that some run has."""
    runs = [run for result in results for run in result.session.runs]
    told = [run.figures.values for run in runs if run.figures]
    return known_figures(told, qualities=True)


def lines(results: Sequence[CaseResult | CaseFailure]) -> Iterator[str]:
    """Yield a table: a line for each case and number of clusters, the chosen one marked.

    What is told of a case (fidelity, costs) stands beside the run that counts.
    """
    done = [result for result in results if isinstance(result, CaseResult)]
    names = shown_figures(done)
    with_truth = any(result.truth for result in done)
    of_case = (*_OF_POOLED, *(("ARI",) if with_truth else ()), *_COSTS)
    head = ["case", "k", "", *names, *of_case]
    rows: list[Cells | str] = []
    files = {result.case.file for result in results}
    for result in results:
        name = _name(result)
        if len(files) > 1:
            name = f"{result.case.file} {name}"
        if isinstance(result, CaseResult):
            rows += _of_case(name, result, names, with_truth=with_truth)
        else:
            rows.append(f"{name}: {result.reason}")
    yield from _laid_out(head, rows)


def _of_case(
    name: str, result: CaseResult, names: Sequence[str], *, with_truth: bool
) -> Iterator[Cells]:
    nothing = [""] * (len(_OF_POOLED) + with_truth + len(_COSTS))
    for number, run in enumerate(result.session.runs):
        counts = number == result.session.chosen
        figures = [_number(getattr(run.figures, each, None)) for each in names]
        yield [
            name if number == 0 else "",
            "" if run.n_clusters is None else str(run.n_clusters),
            "*" if counts else "",
            *figures,
            *(_format_cells(result, with_truth=with_truth) if counts else nothing),
        ]


def _format_cells(result: CaseResult, *, with_truth: bool) -> list[str]:
    """Return what is told of a case beside the run that counts."""
    truth = [_number(result.truth.get("truth", {}).get("ARI"))]
    analyst, slowest = result.seconds
    return [
        _number(result.session.fidelity),
        _number(result.session.pooled_agreement),
        _number(result.session.objective_ratio),
        _number(result.session.objective_ratio_same_rules),
        *(truth if with_truth else []),
        str(result.session.rounds),
        f"{result.sent_bytes:,}",
        f"{analyst:.3f}",
        f"{slowest:.3f}",
    ]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.2f}"


def _laid_out(head: Cells, rows: Sequence[Cells | str]) -> Iterator[str]:
    """Yield lines of aligned columns; the names at the top break at their underscores.

    A row that is one text is written as it is.
    """
    words = [name.split("_") for name in head]
    height = max(map(len, words))
    broken = [["", *parts][-1:] if len(parts) == 1 else parts for parts in words]
    tops = [[""] * (height - len(parts)) + parts for parts in broken]
    titles = [[column[row] for column in tops] for row in range(height)]
    cells = [*titles, *(row for row in rows if not isinstance(row, str))]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    for line in (*titles, *rows):
        if isinstance(line, str):
            yield line
            continue
        first, *rest = zip(line, widths, strict=True)
        numbers = (cell.rjust(width) for cell, width in rest)
        yield "  ".join([first[0].ljust(first[1]), *numbers]).rstrip()


# Beneath the table


def notes(
    results: Sequence[CaseResult | CaseFailure], others: Sequence[LeftOut]
) -> Iterator[str]:
    """Yield what has to be said of the table, a line each."""
    done = [result for result in results if isinstance(result, CaseResult)]
    rules = dict.fromkeys(result.rule for result in done if result.rule)
    if any(result.session.objectives for result in done):
        yield f"{THE_FIGURES}; same rules: over pooled clustering that obeys the session's"
    if rules:
        yield f"* the run that counts: the best by {' or '.join(rules)}"
    yield from without_clusters(done)
    for result in done:
        for sentence in result.session.warnings:
            yield f"warning: {_name(result)}: {sentence}"
    yield from several_runs(results)
    yield from left_out(others)


def without_clusters(done: Sequence[CaseResult]) -> Iterator[str]:
    """Yield a sentence for each case whose rows are as one cluster."""
    for result in done:
        if result.no_clusters:
            yield no_clusters(f"in {_name(result)} ")


def _name(result: CaseResult | CaseFailure) -> str:
    return f"{result.case.protocol} {result.case.layout}"


def several_runs(results: Sequence[CaseResult | CaseFailure]) -> Iterator[str]:
    """Yield the risks that several runs bring, and for which cases."""
    codes: dict[str, list[str]] = {}
    for result in results:
        for code in result.case.of_runs:
            name = _name(result)
            known = codes.setdefault(f"{code}: {result.case.risks[code]}", [])
            known += [name] if name not in known else []
    for said, names in codes.items():
        yield f"several runs in one session bring a risk ({', '.join(names)}): {said}"


def left_out(others: Sequence[LeftOut]) -> Iterator[str]:
    """Yield what was left out, cases of one reason together."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in others:
        layouts = reasons.setdefault((each.protocol, each.reason), [])
        layouts += [each.layout] if each.layout not in layouts else []
    for (protocol, reason), layouts in reasons.items():
        yield f"left out: {protocol} {', '.join(layouts)}: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a simulated session.

    report: JSON values.
    runs: what each run is like, as far as it is known: lines of a table.
    manifest: JSON values; see :attr:`SimulatedSession.manifest`.
    """

    report: Mapping[str, Any]
    runs: Sequence[str]
    manifest: Mapping[str, Any] | None


def simulate(
    protocol: str,
    data: Path,
    how: How,
    params: Mapping[str, Any],
    lattice: Lattice,
    seed: int,
    *,
    choose: str | None,
    truth: str | None,
    labels: Path | None,
    manifest: bool,
) -> Trial:
    """Simulate a session over a table; write the labels if a file is named."""
    table = read(data, how, truth)
    case = case_of(
        data.name, table, protocol, params, lattice, choose=choose, seed=seed
    )
    result = CaseResult(case=case, session=case.play(seed, manifest=manifest))
    session, source = result.session, table.source
    if labels is not None:
        write_labels(labels, session.whole.labels, source.ids, source.naming, {})
    warnings = [*source.report.warnings, *session.warnings]
    report = {**document(result), **_report(session), "warnings": warnings}
    return Trial(report=report, runs=_runs(result), manifest=session.manifest)


def _runs(result: CaseResult) -> list[str]:
    """Return lines of a table: of one run its figures, as its parties would see them.

    Of a description each variable in a line.
    """
    if described := _description(result.session):
        return [*profile_lines([described]), ""]
    if result.case.evaluation is not None:
        return [*lines([result]), *notes([result], []), ""]
    figures = [run.figures for run in result.session.runs if run.figures]
    numbers = [each.n_clusters for each in figures]
    shown = list(table_lines(numbers, [each.values for each in figures], None))
    return [*shown, ""] if shown else []


def _description(session: SimulatedSession) -> Profile | None:
    """Return what a session found of its variables, where it only describes them."""
    return next((p for p in session.results[0].profiles if p.is_description), None)


def _report(session: SimulatedSession) -> dict[str, Any]:
    """Return what is told of one case beside what is told of every case."""
    labels, described = session.whole.labels, _description(session)
    clustered = labels >= 0  # a label of -1 is of no cluster: noise
    return {
        "description": described and described.model_dump(mode="json"),
        "cluster_sizes": np.bincount(labels[clustered]).tolist(),
        "noise_rows": int(np.count_nonzero(~clustered)),
        "roles": {
            role: {"seconds": round(cost.seconds, 6), "sent_bytes": cost.sent_bytes}
            for role, cost in session.costs.items()
        },
    }
