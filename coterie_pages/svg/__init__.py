"""Pictures as SVG, drawn by plain functions: no script, no library, nothing fetched.

Colours come from the page's style, so that dark screens and paper have theirs; each
picture has a title and a description, and its numbers stand in a table beside it.
"""

from coterie_pages.svg.bars import bars
from coterie_pages.svg.blocks import blocks
from coterie_pages.svg.changes import changes
from coterie_pages.svg.curves import Curve, compared_curves, curves
from coterie_pages.svg.elements import standalone
from coterie_pages.svg.heat import heat_map
from coterie_pages.svg.scatter import scatter
from coterie_pages.svg.timeline import timeline

__all__ = [
    "Curve",
    "bars",
    "blocks",
    "changes",
    "compared_curves",
    "curves",
    "heat_map",
    "scatter",
    "standalone",
    "timeline",
]
