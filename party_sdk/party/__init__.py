"""A party in a session: joining, rounds, and their state on its own disk.

A party stops if its policy (:mod:`party_sdk.home.policy`) refuses something; ``leave``
then informs the others.
"""
