"""The chain of stages, run by either side on bytes.

The analyst service, the party SDK and the simulation all run these functions and no
others. They turn agreement, state, tasks and contributions (bytes that a database, a
disk or a network hold) into the next bytes; they relay envelopes, number rounds through
all stages, open a round again where a step declares it void, and keep the transcript of
what everybody was told.
"""

from clustering_protocols.engine.analyst import (
    MAX_ATTEMPTS,
    advance,
    begin,
    check_contribution,
    prepare,
    read_result,
)
from clustering_protocols.engine.journal import Journal
from clustering_protocols.engine.moves import Closed, Opened
from clustering_protocols.engine.party import FINAL, Answer, PartyEngine
from clustering_protocols.engine.stages import load

__all__ = [
    "FINAL",
    "MAX_ATTEMPTS",
    "Answer",
    "Closed",
    "Journal",
    "Opened",
    "PartyEngine",
    "advance",
    "begin",
    "check_contribution",
    "load",
    "prepare",
    "read_result",
]
