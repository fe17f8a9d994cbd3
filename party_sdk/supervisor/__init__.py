"""Standing orders: parties that run in the background, one supervisor for a home.

A party that is to run without anybody at a terminal has an *order*: files in its own
folder of the home, for its owner's eyes, sealed where the home is sealed.

``order.json``
    An :class:`Order`: the invitation, the table and how to read it, choices, outputs.
``status.json``
    An :class:`OrderStatus`, written in one step whenever something moved. It holds no
    secret, row, id or value of a cell.
``question.json``
    A :class:`Question`: what a person has to decide before anything goes on.
``answers.json``
    Every :class:`Answer` that was given. A no stands.

:class:`Orders` is what a page or a command calls: it never starts anything.
:class:`Supervisor` runs each order as a process of its own; :func:`running` says whether
one is at work.
"""

from party_sdk.supervisor.models import (
    Answer,
    Order,
    OrderedTable,
    OrderState,
    OrderStatus,
    Question,
    QuestionKind,
    Trouble,
)
from party_sdk.supervisor.orders import Orders
from party_sdk.supervisor.work import Supervisor, running

__all__ = [
    "Answer",
    "Order",
    "OrderState",
    "OrderStatus",
    "OrderedTable",
    "Orders",
    "Question",
    "QuestionKind",
    "Supervisor",
    "Trouble",
    "running",
]
