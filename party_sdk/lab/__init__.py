"""All roles on one machine: simulated and local sessions, rehearsals.

These names are the door: others import nothing from inside. Each is imported when it is
asked for, and with it what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from party_sdk.lab.local_sessions import LocalSession, local_session
    from party_sdk.lab.parties import (
        AgreedFields,
        Deal,
        Lattice,
        Said,
        deal,
        fields_of_groups,
        read_layout,
        regular,
        usual_lattice,
    )
    from party_sdk.lab.rehearsal import rehearse
    from party_sdk.lab.simulated_session import (
        SimulatedRun,
        SimulatedSession,
        Whole,
        play,
        simulate,
    )

__all__ = [
    "AgreedFields",
    "Deal",
    "Lattice",
    "LocalSession",
    "Said",
    "SimulatedRun",
    "SimulatedSession",
    "Whole",
    "deal",
    "fields_of_groups",
    "local_session",
    "play",
    "read_layout",
    "regular",
    "rehearse",
    "simulate",
    "usual_lattice",
]

_MODULES = {
    "local_sessions": ("LocalSession", "local_session"),
    "rehearsal": ("rehearse",),
    "parties": (
        "AgreedFields",
        "Deal",
        "Lattice",
        "Said",
        "deal",
        "fields_of_groups",
        "read_layout",
        "regular",
        "usual_lattice",
    ),
    "simulated_session": (
        "SimulatedRun",
        "SimulatedSession",
        "Whole",
        "play",
        "simulate",
    ),
}


def __getattr__(name: str) -> Any:
    """Import a name of the door when it is asked for."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
