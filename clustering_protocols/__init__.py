"""Collaborative clustering as values and functions: mathematics and messages.

Nothing in this package opens a file or a socket, reads a clock or draws hidden
randomness. It starts threads only if it is handed an engine that has them
(:mod:`~clustering_protocols.numerics.blocks`). The analyst service and the party SDK
are two shells around it; :mod:`clustering_protocols.simulation` runs both roles in one
process.
"""
