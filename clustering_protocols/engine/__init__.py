"""The engine, which runs the stages of a session for the analyst and for a party.

The analyst service, the party SDK and the simulation all use exactly these functions.
They take agreement, state, tasks and contributions as the bytes that a database, a disk
or a network holds, and return the next bytes. The engine relays envelopes, numbers
rounds across all stages, opens a round again if a step declares it void, and maintains
the transcript of the tasks that all parties received.

The analyst calls `begin` and `advance` (and `check_contribution` for each upload, and
`choose` if the coordinator chooses among several runs); a party uses `PartyEngine`.
"""

from clustering_protocols.engine.analyst import (
    MAX_ATTEMPTS,
    advance,
    begin,
    check_contribution,
    choose,
    prepare,
    read_result,
)
from clustering_protocols.engine.journal import Journal
from clustering_protocols.engine.party import FINAL, PartyEngine, TaskOutcome
from clustering_protocols.engine.session_state import (
    Choosing,
    Closed,
    Conclusion,
    Move,
    Opened,
)
from clustering_protocols.engine.stages import load, prepare_party

__all__ = [
    "FINAL",
    "MAX_ATTEMPTS",
    "Choosing",
    "Closed",
    "Conclusion",
    "Journal",
    "Move",
    "Opened",
    "PartyEngine",
    "TaskOutcome",
    "advance",
    "begin",
    "check_contribution",
    "choose",
    "load",
    "prepare",
    "prepare_party",
    "read_result",
]
