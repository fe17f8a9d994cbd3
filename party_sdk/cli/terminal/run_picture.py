"""A session's runs as a picture: each figure over the number of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clustering_protocols.wire.answers import RunLine


def draw(runs: Sequence[RunLine], path: Path) -> Path:
    """Write a panel for each figure that some run has; a ring is around the chosen run.

    Raises InvalidParameters if there are no figures, or the path does not end in .svg.
    """
    from clustering_protocols.common.errors import InvalidParameters
    from coterie_pages import svg
    from party_sdk.cli.terminal.run_table import known_figures
    from party_sdk.results.plots import Picture

    if not known_figures([run.figures for run in runs], qualities=True):
        raise InvalidParameters(
            "the runs of this session have no figures yet.", field="picture"
        )
    curve = svg.Curve("the session", runs)
    title = "Figures over the number of clusters"
    drawn = svg.compared_curves("runs", title, [("", [curve])])
    return Picture(svg.standalone(drawn)).save(path)
