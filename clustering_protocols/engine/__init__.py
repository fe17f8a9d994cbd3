"""The engine, which runs the stages of a session for the analyst and for a party.

The analyst service, the party SDK and the simulation all use exactly these functions.
They take agreement, state, tasks and contributions as the bytes that a database, a disk
or a network holds, and return the next bytes. The engine relays envelopes, numbers
rounds across all stages, opens a round again if a step declares it void, and maintains
the transcript of the tasks that all parties received.

The analyst calls `begin_session` and `advance_session`, and `check_contribution` for each
upload. It calls `choose_run` if the coordinator chooses among several runs. A party uses
`PartyEngine`.
"""

from clustering_protocols.engine.analyst import (
    MAX_ATTEMPTS,
    advance_session,
    begin_session,
    check_contribution,
    choose_run,
    import_analyst_roles,
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
from clustering_protocols.engine.stages import (
    import_party_roles,
    load_session,
    uses_values,
)

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
    "advance_session",
    "begin_session",
    "check_contribution",
    "choose_run",
    "import_analyst_roles",
    "import_party_roles",
    "load_session",
    "read_result",
    "uses_values",
]
