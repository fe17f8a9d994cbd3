"""What comes of cases as a picture: figures over the number of clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from clustering_protocols.wire.answers import RunLine
from coterie_pages import svg
from party_sdk.cli.lab.case_results import CaseResult
from party_sdk.results.plots import Picture


def draw(results: Sequence[CaseResult], path: Path) -> Path:
    """Write a picture: a panel for each table and figure, a line for each case.

    Colours say the protocol, dashes the layout; a ring is around the run that counts.

    Raises InvalidParameters if the path does not end in .svg.
    """
    cases = [result.case for result in results]
    files = list(dict.fromkeys(case.file for case in cases))
    protocols = list(dict.fromkeys(case.protocol for case in cases))
    layouts = list(dict.fromkeys(case.layout for case in cases))
    curves = [
        svg.Curve(
            f"{result.case.protocol} {result.case.layout}",
            list(_runs(result)),
            protocols.index(result.case.protocol),
            layouts.index(result.case.layout),
        )
        for result in results
    ]
    groups = [
        (
            file if len(files) > 1 else "",
            [
                curve
                for case, curve in zip(cases, curves, strict=True)
                if case.file == file
            ],
        )
        for file in files
    ]
    title = "Figures over the number of clusters"
    drawn = svg.compared_curves("cases", title, groups)
    return Picture(svg.standalone(drawn)).save(path)


def _runs(result: CaseResult) -> Iterator[RunLine]:
    session = result.session
    for number, run in enumerate(session.runs):
        if run.figures is not None and run.n_clusters is not None:
            yield RunLine(
                n_clusters=run.n_clusters,
                figures=run.figures.values,
                chosen=number == session.chosen,
            )
