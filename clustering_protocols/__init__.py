"""Collaborative clustering as values and functions: mathematics and messages.

Nothing in this package opens a file or a socket, reads a clock, draws hidden randomness
or, unless it is handed an engine with threads (:mod:`~clustering_protocols.blocks`),
starts a thread. The analyst service and the party SDK are two shells around
it; :mod:`clustering_protocols.simulation` runs both roles in one process.
"""
