"""One self-contained HTML file of a model: it fetches nothing and runs nothing."""

from __future__ import annotations

import re
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from clustering_protocols.limits import CONTROLS
from coterie_pages import svg, words
from coterie_pages.models import RunReport, SessionReport, TermsSheet
from coterie_pages.svg.heat import lines_of

_TEMPLATES: Final = {
    "terms-sheet": "terms.html.j2",
    "run-report": "run.html.j2",
    "session-report": "session.html.j2",
}
_CONTROL: Final = re.compile(f"[{CONTROLS}]")


def page(model: TermsSheet | RunReport | SessionReport) -> str:
    """Return the HTML of a model.

    Everything in it is escaped, whoever wrote it; what would change the direction of
    text, or cannot be shown, stands as an escape.
    """
    template = _environment().get_template(_TEMPLATES[model.kind])
    return template.render(page=model)


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("coterie_pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "span": words.span,
        "number": words.number,
        "named": words.named,
        "often": words.often,
        "figure": words.figure,
        "title_of": words.title_of,
        "moment": words.moment,
        "event": words.event,
    }
    made.globals |= {
        "agreement_sentence": words.agreement_sentence,
        "share": words.share,
        "svg": svg,
        "lines_of": lines_of,
        "cell": words.cell,
        "finished": words.is_over,
        "shown_figures": words.shown_figures,
    }
    return made


def _shown(value: Any) -> Any:
    """Escape what a browser would obey instead of showing it."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
