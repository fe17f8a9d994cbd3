"""What comes of cases as a picture: figures over the number of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from party_sdk.cli.comparing import Tried
from party_sdk.cli.comparing_table import shown_figures
from party_sdk.cli.runs_picture import draw_figure
from party_sdk.plots import new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS: Final = tuple(f"C{number}" for number in range(10))
_STROKES: Final = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "v"))
_WIDE: Final = 4


def draw(results: Sequence[Tried], path: Path) -> Path:
    """Write a picture: a panel for each table and figure, a line for each case.

    Colours say the protocol, strokes the layout; a ring is around the run that counts.

    Raises
    ------
    InvalidParameters
        If matplotlib is not installed, or does not know the ending.
    """
    files = list(dict.fromkeys(result.case.file for result in results))
    names = shown_figures([lane for result in results for lane in result.lanes])
    wide = min(max(len(names), 1), _WIDE)
    rows_each = -(-max(len(names), 1) // wide)
    figure = new_figure(3.6 * wide, 3.0 * rows_each * max(len(files), 1) + 0.6)
    panels = figure.subplots(rows_each * max(len(files), 1), wide, squeeze=False)
    for place, file in enumerate(files):
        own = panels[place * rows_each : (place + 1) * rows_each].ravel()
        for panel, name in zip(own, names, strict=False):
            _draw_panel(panel, results, file, name)
            if len(files) > 1:
                panel.set_title(file, fontsize="small")
    for panel in panels.ravel():
        panel.set_visible(panel.has_data())
    _add_legend(figure, results, panels)
    return save(figure, path)


def _draw_panel(panel: Any, results: Sequence[Tried], file: str, name: str) -> None:
    for result in results:
        if result.case.file != file:
            continue
        runs = [
            (
                lane.n_clusters,
                getattr(lane.figures, name, None),
                number == result.chosen,
            )
            for number, lane in enumerate(result.lanes)
        ]
        colour, stroke, marker = _look(result, results)
        draw_figure(panel, name, runs, stroke, marker=marker, color=colour)


def _look(result: Tried, results: Sequence[Tried]) -> tuple[str, Any, str]:
    """Return colour, stroke and marker of a case."""
    protocols = list(dict.fromkeys(each.case.protocol for each in results))
    layouts = list(dict.fromkeys(each.case.layout for each in results))
    colour = _COLOURS[protocols.index(result.case.protocol) % len(_COLOURS)]
    stroke = _STROKES[layouts.index(result.case.layout) % len(_STROKES)]
    return colour, *stroke


def _add_legend(figure: Figure, results: Sequence[Tried], panels: Any) -> None:
    """Name the cases once, beneath all panels."""
    from matplotlib.lines import Line2D

    known: dict[str, Line2D] = {}
    for result in results:
        colour, stroke, marker = _look(result, results)
        label = f"{result.case.protocol} {result.case.layout}"
        sample = known[label] = Line2D([], [], color=colour, marker=marker)
        sample.set_linestyle(stroke)
    if known:
        ring = Line2D([], [], color="grey", marker="o", markersize=11, linestyle="")
        ring.set_fillstyle("none")
        known["the run that counts"] = ring
    figure.tight_layout()
    figure.legend(
        known.values(),
        known.keys(),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=min(len(known), panels.shape[1] * 2) or 1,
    )
