"""What a protocol is.

A session is a chain of *stages*. A stage is rounds: the analyst role asks every party
for one record (the task), the party role replies with one record (the contribution) and
may send records to other parties in envelopes, which the analyst relays with the next
task. The analyst's state between rounds and the party's memory are records too.

A protocol is one folder under ``protocols/`` with a ``PROTOCOL`` of the class below.
Roles are pure: what they need comes in as arguments, chance included.
"""

from .analyst import Again, AnalystRole, Ask, Finish, ask_all
from .party import Incoming, Memory, Outcome, Outgoing, PartyRole, Reply, View
from .plan import Params, Plan
from .protocol import ClusteringProtocol, Example, Stage, Trace
from .selection import Selection

__all__ = [
    "Again",
    "AnalystRole",
    "Ask",
    "ClusteringProtocol",
    "Example",
    "Finish",
    "Incoming",
    "Memory",
    "Outcome",
    "Outgoing",
    "Params",
    "PartyRole",
    "Plan",
    "Reply",
    "Selection",
    "Stage",
    "Trace",
    "View",
    "ask_all",
]
