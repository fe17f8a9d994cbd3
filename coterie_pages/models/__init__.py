"""The models of pages: what one says, without a word of how it looks."""

from coterie_pages.models.parts import (
    Expected,
    Learns,
    Left,
    Line,
    Matrix,
    Points,
    Risk,
    Run,
    Seat,
    Versions,
    Who,
)
from coterie_pages.models.reports import RunReport, SessionReport
from coterie_pages.models.sheet import (
    Asked,
    FieldLine,
    Fields,
    Item,
    Message,
    Parameter,
    Place,
    Step,
    TermsSheet,
)

__all__ = [
    "Asked",
    "Expected",
    "FieldLine",
    "Fields",
    "Item",
    "Learns",
    "Left",
    "Line",
    "Matrix",
    "Message",
    "Parameter",
    "Place",
    "Points",
    "Risk",
    "Run",
    "RunReport",
    "Seat",
    "SessionReport",
    "Step",
    "TermsSheet",
    "Versions",
    "Who",
]
