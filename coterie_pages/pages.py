"""Render a model as HTML: as a file without scripts, or as a served page in a frame."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from inspect import isfunction
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from clustering_protocols.common.limits import CONTROLS
from clustering_protocols.wire.states import OVER
from coterie_pages import formatting, result_texts, svg
from coterie_pages.models import Frame, RunReport, Screen, SessionReport, TermsSheet
from coterie_pages.served_pages import asset_url

_REPORTS: Final = {
    "terms-sheet": "terms.html.j2",
    "run-report": "run.html.j2",
    "session-report": "session.html.j2",
}
Report = TermsSheet | RunReport | SessionReport
"""The models that can be rendered either as a file to print, or as a served page."""
_MACROS: Final = {
    "parts": "parts.html.j2",
    "forms": "forms.html.j2",
    "desk": "desk/parts.html.j2",
}
"""Macro files available to every page; each can also use the macro files above it."""
_CONTROL: Final = re.compile(f"[{CONTROLS}]")


def render_html(model: Report) -> str:
    """Render a model as one HTML file, in which every value is escaped."""
    return _render(_REPORTS[model.kind], page=model, frame_template="file.html.j2")


def _render(name: str, **values: Any) -> str:
    for macros, template in _MACROS.items():
        values[macros] = _environment().get_template(template).make_module(values)
    return _environment().get_template(name).render(values)


def render_assessment(sheet: TermsSheet) -> str:
    """Render a data protection impact assessment in Markdown from a terms sheet."""
    template = _markdown_environment().get_template("dpia.md.j2")
    return template.render(page=sheet)


@cache
def _markdown_environment() -> Environment:
    """Create the Markdown environment, where values cannot open tags or end table cells."""
    environment = _environment().overlay(autoescape=False, finalize=_escape_markdown)
    environment.filters |= {"in_cell": lambda text: text.replace("|", "\\|")}
    return environment


def _escape_markdown(value: Any) -> Any:
    text = _escape_control_characters(value)
    return text.replace("<", "&lt;") if isinstance(text, str) else text


def render_screen(model: Report | Screen, frame: Frame) -> str:
    """Render a model as the HTML of a served page."""
    if not isinstance(model, Screen):
        model = Screen(_REPORTS[model.kind], model)
    return _render(
        model.template,
        page=model if model.shown is None else model.shown,
        own=model,
        frame=frame,
        frame_template="app.html.j2",
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("coterie_pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escape_control_characters,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions = {
        name: function
        for module in (formatting, result_texts)
        for name, function in vars(module).items()
        if isfunction(function) and not name.startswith("_")
    }
    environment.filters |= functions
    environment.globals |= functions
    environment.globals |= {
        "asset_url": asset_url,
        "levels": formatting.LEVELS,
        "personal_data": formatting.PERSONAL_DATA,
        "finished": formatting.is_over,
        "completed": formatting.is_completed,
        "svg": svg,
        "lines_of": svg.lines_of,
        "over_states": OVER,
        "reading": READING,
    }
    return environment


def _escape_control_characters(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    if value.isprintable():  # fast path: nearly every text is printable
        return value
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", value)


READING: Final[Mapping[str, str]] = {
    "inertia": "Sum of the squared distances of rows to the mean of their cluster. "
    "It falls with every additional cluster: look for where it stops falling fast.",
    "simplified_silhouette": "How much nearer rows are to their own cluster's centre than "
    "to the next one's, from -1 to 1. The larger, the better; near 0 clusters touch.",
    "silhouette": "How much nearer rows are to the rows of their own cluster than to "
    "those of the next, from -1 to 1. The larger, the better; near 0 clusters touch.",
    "calinski_harabasz": "How far apart clusters are, relative to how wide they are. The "
    "larger, the better; compare it only between numbers of clusters.",
    "davies_bouldin": "How much each cluster overlaps with the most similar one. The "
    "smaller, the better.",
    "partition_coefficient": "How clearly rows belong to one cluster rather than to "
    "several, up to 1. The larger, the better; it favours few clusters.",
    "xie_beni": "How wide clusters are, relative to the distance between the two nearest. "
    "The smaller, the better.",
    "criterion": "What the method maximises. Use it to compare starts and runs of one "
    "method, not different methods.",
    "aic": "How well a mixture fits, given its number of parameters (Akaike). The "
    "smaller, the better; it favours many clusters.",
    "bic": "How well a mixture fits, given its number of parameters (Schwarz). The "
    "smaller, the better.",
    "icl": "Like BIC, but overlapping clusters count as worse. The smaller, the better.",
    "entropy": "How uncertain the memberships of rows are, from 0 to 1. The smaller, "
    "the better.",
    "gap": "How much tighter clusters are than in rows without clusters. The larger, the "
    "better; if even the largest gap is not above that of one cluster, there are none.",
    "stability": "How similar the clusters of two halves of the rows are, up to 1. The "
    "larger, the better; well below 1, different rows would give different clusters.",
    "prediction_strength": "For the least predictable cluster of one half of the rows: the "
    "fraction of pairs that the other half keeps together. Above 0.8 clusters are usually real.",
    "n_iter": "How many updates were made.",
    "converged": "Whether the updates converged. If not, allow more of them.",
}
"""How to interpret each of the :class:`clustering_protocols.numerics.metrics.Figures`."""
