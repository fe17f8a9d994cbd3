"""Parties in the background: the desk runs each order as a process of its own.

A party that runs without a terminal has an *order* in its home: an ``Order`` (the
invitation, the table and how to read it, choices, outputs), an ``OrderStatus``, which
holds no secret, row, id or cell, a ``PendingQuestion`` that a person has to answer,
and every ``Decision`` so far.

``orders`` only changes what is stored, ``supervisor`` is the thread that runs orders, and
``order_runner`` is the process of one order.
"""
