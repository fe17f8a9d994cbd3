"""A session's runs as a picture: each figure over the number of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clustering_protocols.wire.answers import RunLine
from party_sdk.cli.comparing_table import NOT_SHOWN
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

    names = [
        name
        for name in (runs[0].figures if runs else ())
        if name not in NOT_SHOWN and any(run.figures[name] is not None for run in runs)
    ]
    if not names:
        raise InvalidParameters(
            "picture: the runs of this session have no figures yet."
        )
    rows = -(-len(names) // _WIDE)
    figure = new_figure(3.6 * _WIDE, 3.0 * rows)
    panels = figure.subplots(rows, _WIDE, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        known = [run for run in runs if run.figures[name] is not None]
        panel.plot(
            [run.n_clusters for run in known],
            [run.figures[name] for run in known],
            "o-",
        )
        for run in known:
            if run.chosen:
                panel.plot(
                    run.n_clusters, run.figures[name], "o", ms=11, fillstyle="none"
                )
        panel.set(xlabel="number of clusters", ylabel=name.replace("_", " "))
        panel.xaxis.get_major_locator().set_params(integer=True)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    figure.tight_layout()
    return save(figure, path)
