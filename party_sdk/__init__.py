"""The party SDK: take part in a session, or coordinate one, from Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from party_sdk.coordinator import Coordinator
    from party_sdk.frames import Result
    from party_sdk.participant import Party
    from party_sdk.policy import Policy

__all__ = ["Coordinator", "Party", "Policy", "Result"]

_MODULES = {
    "Coordinator": "coordinator",
    "Party": "participant",
    "Policy": "policy",
    "Result": "frames",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: most commands ask for none."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
