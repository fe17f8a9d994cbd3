"""Files carried by hand: a party whose data never touch a connected machine.

Two machines. The *connected* one talks to the analyst: it holds the invitation's code and
the token, and no data (:mod:`~party_sdk.offline.courier`). The other has no network:
it holds data, policy, identity, entropy and memory, and is the party
(:mod:`~party_sdk.offline.offline_analyst`). Between them go two kinds of files
(:mod:`~party_sdk.offline.files`): what the analyst said, and what is to be sent.
"""

from party_sdk.offline.courier import Courier
from party_sdk.offline.files import AnswerFile, TaskFile
from party_sdk.offline.offline_analyst import AnswerReady, NothingMore, OfflineAnalyst

__all__ = [
    "AnswerFile",
    "AnswerReady",
    "Courier",
    "NothingMore",
    "OfflineAnalyst",
    "TaskFile",
]
