"""Simulation of a whole session in one process, in which all messages are encoded.

A simulation runs the same functions on the same bytes as the service and the SDK. An
HTTP session with the same id and entropy ends with exactly the same labels;
:func:`derive_entropies` returns the entropy that a simulation derives from its seed.

:func:`run` computes the labels from the data. :class:`Session` plays one round at a
time: parties may be absent, restart, receive a forged task, or answer again.
"""

from clustering_protocols.simulation.evaluation import (
    SessionEvaluation,
    can_be_pooled,
    compare_objectives,
    compare_with_pooled,
    compute_fidelity,
    evaluate,
)
from clustering_protocols.simulation.session import (
    ANALYST,
    COORDINATOR,
    RoleCost,
    SentMessage,
    Session,
    SimulationResult,
    Timer,
    build_agreement,
    derive_entropies,
    enrol,
    run,
)
from clustering_protocols.simulation.split import Split, number_rows, split

__all__ = [
    "ANALYST",
    "COORDINATOR",
    "RoleCost",
    "SentMessage",
    "Session",
    "SessionEvaluation",
    "SimulationResult",
    "Split",
    "Timer",
    "build_agreement",
    "can_be_pooled",
    "compare_objectives",
    "compare_with_pooled",
    "compute_fidelity",
    "derive_entropies",
    "enrol",
    "evaluate",
    "number_rows",
    "run",
    "split",
]
