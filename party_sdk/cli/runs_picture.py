"""A session's runs as a picture: each figure over the number of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clustering_protocols.wire.answers import RunLine
from party_sdk.cli.runs import known_figures
from party_sdk.plots import new_figure, save

_WIDE = 3


def draw(runs: Sequence[RunLine], path: Path) -> Path:
    """Write a panel for each figure that some run has; a ring is around the chosen run.

    Raises
    ------
    InvalidParameters
        If there are no figures, matplotlib is not installed, or does not know the ending.
    """
    from clustering_protocols.errors import InvalidParameters

    names = known_figures([run.figures for run in runs], qualities=True)
    if not names:
        raise InvalidParameters(
            "picture: the runs of this session have no figures yet."
        )
    rows = -(-len(names) // _WIDE)
    figure = new_figure(3.6 * _WIDE, 3.0 * rows)
    panels = figure.subplots(rows, _WIDE, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        draw_figure(
            panel,
            name,
            [(run.n_clusters, run.figures[name], run.chosen) for run in runs],
        )
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    figure.tight_layout()
    return save(figure, path)


def draw_figure(
    panel: Any,
    name: str,
    runs: Sequence[tuple[int | None, float | None, bool]],
    stroke: str = "-",
    **look: Any,
) -> None:
    """Draw a figure over the number of clusters, in a panel that may hold more.

    Parameters
    ----------
    name : str
        Of the figure.
    runs : sequence of tuple
        Number of clusters, figure, and whether it counts: that gets a ring. Runs that
        lack the figure are left out.
    stroke, **look
        As matplotlib takes them.
    """
    known = [run for run in runs if run[1] is not None]
    if not known:
        return
    ks, values, _ = zip(*known, strict=True)
    look = {"marker": "o", "color": "C0"} | look
    panel.plot(ks, values, stroke, markersize=4, **look)
    for k, value, counts in known:
        if counts:
            ring = {"marker": "o", "markersize": 11, "fillstyle": "none"}
            panel.plot(k, value, color=look["color"], **ring)
    panel.set(xlabel="number of clusters", ylabel=name.replace("_", " "))
    panel.xaxis.get_major_locator().set_params(integer=True)
