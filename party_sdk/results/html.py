"""What a result is like, as HTML for notebooks: sizes and figures, and no row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import IntArray


def summary(
    labels: IntArray,
    cluster_sizes: IntArray | None,
    figures: Sequence[Figures],
    chosen: int,
) -> str:
    """Return sizes of clusters and figures of runs as an HTML fragment."""
    title = f"<p><b>Result</b>: {len(labels)} rows of this table</p>"
    return f"<div>{title}{_sizes(labels, cluster_sizes)}{_runs(figures, chosen)}</div>"


def _sizes(labels: IntArray, everybody: IntArray | None) -> str:
    clusters = sorted(
        {*map(int, np.unique(labels)), *range(_count_clusters(everybody))}
    )
    rows = []
    for cluster in clusters:
        of_all = everybody if cluster >= 0 else None
        whole = "" if of_all is None else f"{int(of_all[cluster])}"
        name = "no cluster" if cluster < 0 else str(cluster)
        rows.append([name, str(np.count_nonzero(labels == cluster)), whole])
    return _table(["cluster", "own rows", "rows of all parties"], rows)


def _count_clusters(sizes: IntArray | None) -> int:
    return 0 if sizes is None else len(sizes)


def _runs(figures: Sequence[Figures], chosen: int) -> str:
    if not figures:
        return ""
    told: list[Mapping[str, Any]] = [each.values for each in figures]
    names = [name for name in told[0] if any(run[name] is not None for run in told)]
    rows = [
        [("*" if number == chosen and len(told) > 1 else ""), *map(_format_value, run)]
        for number, run in enumerate([each[name] for name in names] for each in told)
    ]
    return _table(["", *(name.replace("_", " ") for name in names)], rows)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
