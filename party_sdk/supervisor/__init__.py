"""Parties in the background: each order runs in a process of its own.

An *order* is the instruction to run one party without a terminal. A home stores an
``Order`` (the invitation, the table and how to read it, choices, outputs), an
``OrderStatus`` without any secret, row, id or cell, a ``PendingQuestion`` that a person
has to answer, and every ``Decision`` so far.

``orders`` only changes stored records, ``supervisor`` is the thread that runs orders,
and ``order_runner`` is the process of one order.
"""
