"""The engine runs the stages of a session, for the analyst and for a party, on bytes.

The analyst service, the party SDK and the simulation all run these functions and no
others. Agreement, state, tasks and contributions go in as the bytes that a database, a
disk or a network holds; the next bytes come out. The engine relays envelopes, numbers
rounds through all stages, opens a round again where a step declares it void, and keeps
the transcript of the tasks that everybody received.

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
