"""What was measured of protocols: agreement with pooled clustering, costs of one run.

The figures are those that ``make bench`` wrote into ``evidence.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from clustering_protocols import catalogue
from clustering_protocols.common.suitability import Partitioning
from clustering_protocols.contract import Params
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.terms import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What was measured for a way on one data set.

    ratio, worst_ratio, worst_ratio_same_rules: as in ``ExpectedFigures``.
    """

    set: str
    mean: float
    least: float
    seeds: int
    rounds: int
    ratio: float | None = None
    worst_ratio: float | None = None
    worst_ratio_same_rules: float | None = None


def figures(protocol: str, way: str, partitioning: str) -> list[Figure]:
    """Return what was measured for a way of a protocol, by data set."""
    wanted = {"protocol": protocol, "way": way, "partitioning": partitioning}
    return [
        Figure(
            **{each.name: row[each.name] for each in fields(Figure) if each.name in row}
        )
        for row in evidence()["fidelity"]
        # one cluster, or none: agreement says nothing
        if wanted.items() <= row.items() and row.get("clusters", 0) > 1
    ]


def in_words(figures: Sequence[Figure]) -> str:
    """Return in words how a way agreed with pooled clustering; empty where unmeasured."""
    if not figures:
        return ""
    worst = min(figures, key=lambda each: each.mean)
    best = max(figures, key=lambda each: each.mean)
    n_sets = len(figures)
    found = f"{worst.mean:.3f} on each of {n_sets} sets"
    if worst.mean < best.mean:
        found = (
            f"{worst.mean:.3f} ({worst.set}) to {best.mean:.3f} ({best.set}) on "
            f"{n_sets} sets"
        )
    return f"{found}; 1: equal to pooled clustering"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What sessions of one run took where they were measured, least and most.

    sent_bytes: by the party that sent most.
    n_rows: rows of a session, at most.
    """

    rounds: tuple[int, int]
    sent_bytes: tuple[int, int]
    n_rows: int


def costs(params: Params, layout: Layout) -> Costs | None:
    """Return what sessions of an algorithm took over rows or columns split alike."""
    name, split = catalogue.name_of(params), _find_partitioning(layout)
    algorithm = getattr(params, "algorithm", None)
    ways = {way.name for way in catalogue.protocol(name).methods}
    rows = [
        row
        for row in evidence()["fidelity"]
        if (row["protocol"], row["partitioning"]) == (name, split)
        and row["way"] in ways
        and "rounds" in row
        and row["params"].get("algorithm", _default(params)) == algorithm
    ]
    if not rows:
        return None
    rounds = [row["rounds"] for row in rows]
    sent = [row["sent_bytes"] for row in rows]
    return Costs(
        rounds=(min(rounds), max(rounds)),
        sent_bytes=(min(sent), max(sent)),
        n_rows=max(row["rows"] for row in rows),
    )


def rounds_line(params: Params, layout: Layout, runs: Evaluation) -> str:
    """Return what several runs cost, before the session opens, as a sentence."""
    many = len(runs.n_clusters)
    stages = catalogue.protocol_of(params).stages(params, layout)
    if any(stage.each_run for stage in stages):
        said = (
            f"{many} runs, one after the other: about {many} times the rounds, bytes and "
            "time of one"
        )
    else:
        said = (
            f"{many} runs: {many} times the analyst's work, but rounds and bytes of one"
        )
    return f"{said}{_of_one_run(params, layout)}."


def _of_one_run(params: Params, layout: Layout) -> str:
    """Return what one run took where it was measured; nothing where it was not."""
    found = costs(params, layout)
    if found is None:
        return ""
    least, most = (size / 1000 for size in found.sent_bytes)
    rounds = " to ".join(map(str, dict.fromkeys(found.rounds)))
    return (
        f", which took {rounds} rounds, and {least:,.0f} to {most:,.0f} kB from the party "
        f"that sent most, on sets of up to {found.n_rows} rows (docs/evidence.md)"
    )


def _find_partitioning(layout: Layout) -> Partitioning:
    if layout.n_column_groups == 1:
        return "horizontal"
    return "vertical" if layout.n_row_groups == 1 else "mixed"


def _default(params: Params) -> Any:
    """Return the algorithm that parameters name where nobody says any."""
    field = type(params).model_fields.get("algorithm")
    return None if field is None else field.default


@cache
def evidence() -> Mapping[str, Any]:
    """Return what ``make bench`` measured."""
    text = resources.files("party_sdk.advice").joinpath("evidence.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found
