"""Parties in the background: the desk runs each order as a process of its own.

A party that runs without a terminal has an *order* in its home: an :class:`Order` (the
invitation, the table and how to read it, choices, outputs), an :class:`OrderStatus`, which
holds no secret, row, id or cell, a :class:`PendingQuestion` that a person has to answer,
and every :class:`Decision` so far.

:class:`PartyOrder` and :func:`place_order` only change what is stored. :class:`Supervisor`
is the thread that runs orders.
"""

from party_sdk.supervisor.orders import (
    Decision,
    Order,
    OrderedTable,
    OrderState,
    OrderStatus,
    PartyOrder,
    PendingQuestion,
    QuestionKind,
    Trouble,
    orders_in,
    place_order,
)
from party_sdk.supervisor.supervisor import Supervisor

__all__ = [
    "Decision",
    "Order",
    "OrderState",
    "OrderStatus",
    "OrderedTable",
    "PartyOrder",
    "PendingQuestion",
    "QuestionKind",
    "Supervisor",
    "Trouble",
    "orders_in",
    "place_order",
]
