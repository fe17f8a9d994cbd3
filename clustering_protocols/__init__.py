"""The mathematics and messages of collaborative clustering, as values and functions.

Nothing in this package opens a file or a socket, reads a clock or draws hidden
randomness. It starts threads only through an engine that the caller passes in
(:mod:`~clustering_protocols.numerics.blocks`). The analyst service and the party SDK
are two shells around it; :mod:`clustering_protocols.simulation` runs both roles in one
process.
"""
