"""A party in a session: joining, rounds, and what is kept of them on its own disk.

A party stops where :mod:`party_sdk.home.policy` refuses, and says so by ``leave``.
"""
