"""Standing orders: parties that run in the background, one supervisor for a home.

A party that is to run without anybody at a terminal has an *order*: files in its own
folder of the home, for its owner's eyes, sealed where the home is sealed.

``order.json``
    An :class:`Order`: the invitation, the table and how to read it, choices, outputs.
``status.json``
    An :class:`OrderStatus`, written in one step whenever something moved. It holds no
    secret, row, id or value of a cell.
``question.json``
    A :class:`PendingQuestion`: what a person has to decide before anything continues.
``answers.json``
    Every :class:`Decision` that was given. A no stands.

:class:`Orders` is what a page or a command calls: it never starts anything.
:class:`Supervisor` runs each order as a process of its own. :func:`find_supervisor`
returns the process id of the one at work, if there is one.
"""

from party_sdk.supervisor.models import (
    Decision,
    Order,
    OrderedTable,
    OrderState,
    OrderStatus,
    PendingQuestion,
    QuestionKind,
    Trouble,
)
from party_sdk.supervisor.orders import Orders
from party_sdk.supervisor.scheduler import Supervisor, find_supervisor

__all__ = [
    "Decision",
    "Order",
    "OrderState",
    "OrderStatus",
    "OrderedTable",
    "Orders",
    "PendingQuestion",
    "QuestionKind",
    "Supervisor",
    "Trouble",
    "find_supervisor",
]
