"""Parties in the background: the desk runs each order as a process of its own.

A party that is to run without anybody at a terminal has an *order*: files in its own
folder of the home, for its owner's eyes.

``order.json``
    An :class:`Order`: the invitation, the table and how to read it, choices, outputs.
``status.json``
    An :class:`OrderStatus`, written in one step whenever something moved. It holds no
    secret, row, id or value of a cell.
``question.json``
    A :class:`PendingQuestion`: what a person has to decide before anything continues.
``answers.json``
    Every :class:`Decision` that was given. A no stands.

:class:`Orders` is what a page calls: it never starts anything. :class:`Supervisor` is the
thread that runs them.
"""

from party_sdk.supervisor.orders import (
    Decision,
    Order,
    OrderedTable,
    OrderFiles,
    Orders,
    OrderState,
    OrderStatus,
    PendingQuestion,
    QuestionKind,
    Trouble,
    orders_in,
)
from party_sdk.supervisor.supervisor import Supervisor

__all__ = [
    "Decision",
    "Order",
    "OrderFiles",
    "OrderState",
    "OrderStatus",
    "OrderedTable",
    "Orders",
    "PendingQuestion",
    "QuestionKind",
    "Supervisor",
    "Trouble",
    "orders_in",
]
