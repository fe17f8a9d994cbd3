"""Parties in the background: the desk runs each order as a process of its own.

A party that is to run without anybody at a terminal has an *order* in its home: an
:class:`Order` (the invitation, the table and how to read it, choices, outputs), an
:class:`OrderStatus`, which holds no secret, row, id or value of a cell, a
:class:`PendingQuestion` for a person to decide before anything continues, and every
:class:`Decision` that was given. A no stands.

:class:`Orders` is what a page calls: it never starts anything. :class:`Supervisor` is the
thread that runs them.
"""

from party_sdk.supervisor.orders import (
    Decision,
    Order,
    OrderedTable,
    Orders,
    OrderState,
    OrderStatus,
    PartyOrder,
    PendingQuestion,
    QuestionKind,
    Trouble,
    orders_in,
)
from party_sdk.supervisor.supervisor import Supervisor

__all__ = [
    "Decision",
    "Order",
    "OrderState",
    "OrderStatus",
    "OrderedTable",
    "Orders",
    "PartyOrder",
    "PendingQuestion",
    "QuestionKind",
    "Supervisor",
    "Trouble",
    "orders_in",
]
