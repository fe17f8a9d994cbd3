"""A party in a session: joining, rounds, and their state on its own disk.

A party stops if its policy (:mod:`party_sdk.home.policy`) refuses something, and ``leave``
reports that to the others.
"""
