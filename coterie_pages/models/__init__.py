"""The models of pages: what one says, without a word of how it looks."""

from coterie_pages.models.parts import (
    AuditRow,
    Learns,
    Matrix,
    NamedInstitution,
    Points,
    Risk,
    SentLine,
    SlotEntry,
    Versions,
)
from coterie_pages.models.reports import (
    ClusterDrift,
    NewRowsSummary,
    RunReport,
    SessionReport,
    VariableDrift,
)
from coterie_pages.models.sheet import (
    DictionaryFields,
    FieldLine,
    Item,
    Message,
    ParameterLine,
    PlannedSlot,
    RoundKind,
    SentKind,
    Step,
    TermsSheet,
)

__all__ = [
    "AuditRow",
    "ClusterDrift",
    "DictionaryFields",
    "FieldLine",
    "Item",
    "Learns",
    "Matrix",
    "Message",
    "NamedInstitution",
    "NewRowsSummary",
    "ParameterLine",
    "PlannedSlot",
    "Points",
    "Risk",
    "RoundKind",
    "RunReport",
    "SentKind",
    "SentLine",
    "SessionReport",
    "SlotEntry",
    "Step",
    "TermsSheet",
    "VariableDrift",
    "Versions",
]
