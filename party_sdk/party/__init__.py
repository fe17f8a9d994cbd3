"""A party in a session: joining, rounds, and their state on its own disk.

A party stops where :mod:`party_sdk.home.policy` refuses, and reports that by ``leave``.
"""
