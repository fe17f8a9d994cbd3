"""Files carried by hand: a party whose data never touch a connected machine.

Two machines. The *connected* one talks to the analyst: it holds the invitation's code and
the token, and no data (:mod:`~party_sdk.stepping.connected`). The other has no network:
it holds data, policy, identity, entropy and memory, and is the party
(:mod:`~party_sdk.stepping.carried`). Between them go two kinds of files
(:mod:`~party_sdk.stepping.files`): what the analyst said, and what is to be sent.
"""

from party_sdk.stepping.carried import Carried, Leaving, NothingMore
from party_sdk.stepping.connected import Connected
from party_sdk.stepping.files import AnswerFile, TaskFile

__all__ = [
    "AnswerFile",
    "Carried",
    "Connected",
    "Leaving",
    "NothingMore",
    "TaskFile",
]
