"""The contract between protocols and the engine that runs them.

A session is a chain of *stages*. A stage has rounds: the analyst role asks every party
for one record (the task), the party role replies with one record (the contribution) and
may send records to other parties in envelopes, which the analyst relays with the next
task. The analyst's state between rounds and the party's memory are records too.

A protocol is one folder under ``protocols/`` with a ``PROTOCOL``, a
``ClusteringProtocol``. Roles are pure: all inputs, including randomness, are arguments.

Tasks are named after the request (``measure``), contributions after the completed
action (``measured``) or content (``sums``), and states after what continues
(``measuring``).
"""

from clustering_protocols.contract.published import PrivacySpending

from .analyst import AnalystRole, Ask, Finish, Reopen, Run, agreed, narrow_all
from .disclosures import Disclosure, Kind, Reader, disclosures_to
from .party import (
    Outcome,
    PartyContext,
    PartyRole,
    PeerMessage,
    Placement,
    Reply,
    leader_content,
)
from .protocol import (
    USUAL_FIGURES,
    ClusteringProtocol,
    Example,
    Exchange,
    PooledReference,
    Stage,
    Trace,
    role_factories,
)
from .row_history import DegreeSums, RowHistory
from .session import Params, SessionContext

__all__ = [
    "USUAL_FIGURES",
    "AnalystRole",
    "Ask",
    "ClusteringProtocol",
    "DegreeSums",
    "Disclosure",
    "Example",
    "Exchange",
    "Finish",
    "Kind",
    "Outcome",
    "Params",
    "PartyContext",
    "PartyRole",
    "PeerMessage",
    "Placement",
    "PooledReference",
    "PrivacySpending",
    "Reader",
    "Reopen",
    "Reply",
    "RowHistory",
    "Run",
    "SessionContext",
    "Stage",
    "Trace",
    "agreed",
    "disclosures_to",
    "leader_content",
    "narrow_all",
    "role_factories",
]
