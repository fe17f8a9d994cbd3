"""All that a program needs to coordinate a session, to take part in one, or to try one.

    from coterie import Coordinator, DataCollaboration, Layout, Party, Policy
    from coterie import FederatedKMeans, local_session, simulate

Beside the names below, the parameters of every protocol are here under their own names.
A name is imported when it is asked for, and with it what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustering_protocols.protocols.dc import Anchor, DataCollaboration
    from clustering_protocols.protocols.dummy import Dummy
    from clustering_protocols.protocols.fccm import CoClustering
    from clustering_protocols.protocols.llf import LosslessFederated
    from clustering_protocols.protocols.omnifc import OmniFC
    from clustering_protocols.protocols.pqmds import Privacy, ProductQuantisation
    from clustering_protocols.terms.preparation import Preparation
    from clustering_protocols.terms.schema import Schema
    from clustering_protocols.terms.sections import Evaluation, Release, Retention
    from clustering_protocols.terms.terms import About, Deadlines, Guards, Layout, Slot
    from coterie import datasets
    from party_sdk.coordinator.coordinator import Coordinator
    from party_sdk.estimators import (
        CannotCluster,
        FederatedCoClustering,
        FederatedFuzzyCMeans,
        FederatedGaussianMixture,
        FederatedKMeans,
        FederatedLatentClass,
        FederatedSpectralClustering,
    )
    from party_sdk.home.policy import Policy
    from party_sdk.lab.local_sessions import LocalSession, local_session
    from party_sdk.lab.simulated_session import SimulatedSession, simulate
    from party_sdk.party.participant import Party
    from party_sdk.results.results import Result

__all__ = [
    "About",
    "Anchor",
    "CannotCluster",
    "CoClustering",
    "Coordinator",
    "DataCollaboration",
    "Deadlines",
    "Dummy",
    "Evaluation",
    "FederatedCoClustering",
    "FederatedFuzzyCMeans",
    "FederatedGaussianMixture",
    "FederatedKMeans",
    "FederatedLatentClass",
    "FederatedSpectralClustering",
    "Guards",
    "Layout",
    "LocalSession",
    "LosslessFederated",
    "OmniFC",
    "Party",
    "Policy",
    "Preparation",
    "Privacy",
    "ProductQuantisation",
    "Release",
    "Result",
    "Retention",
    "Schema",
    "SimulatedSession",
    "Slot",
    "datasets",
    "local_session",
    "simulate",
]

_TERMS = "clustering_protocols.terms.terms"
_ESTIMATORS = "party_sdk.estimators"
_LOCAL, _SIMULATED = "party_sdk.lab.local_sessions", "party_sdk.lab.simulated_session"
_MODULES = {
    "About": _TERMS,
    "CannotCluster": _ESTIMATORS,
    "Coordinator": "party_sdk.coordinator.coordinator",
    "Deadlines": _TERMS,
    "Evaluation": "clustering_protocols.terms.sections",
    "FederatedCoClustering": _ESTIMATORS,
    "FederatedFuzzyCMeans": _ESTIMATORS,
    "FederatedGaussianMixture": _ESTIMATORS,
    "FederatedKMeans": _ESTIMATORS,
    "FederatedLatentClass": _ESTIMATORS,
    "FederatedSpectralClustering": _ESTIMATORS,
    "Guards": _TERMS,
    "Layout": _TERMS,
    "LocalSession": _LOCAL,
    "Party": "party_sdk.party.participant",
    "Policy": "party_sdk.home.policy",
    "Preparation": "clustering_protocols.terms.preparation",
    "Release": "clustering_protocols.terms.sections",
    "Result": "party_sdk.results.results",
    "Retention": "clustering_protocols.terms.sections",
    "Schema": "clustering_protocols.terms.schema",
    "SimulatedSession": _SIMULATED,
    "Slot": _TERMS,
    "local_session": _LOCAL,
    "simulate": _SIMULATED,
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name == "datasets":
        return import_module(f"{__name__}.{name}")
    module = _MODULES.get(name)
    if module is not None:
        return getattr(import_module(module), name)
    import_module("party_sdk")  # which says whose packages count
    for offered in _protocols() if not name.startswith("_") else ():
        if name in offered.__all__ and name != "PROTOCOL":
            return getattr(offered, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _protocols() -> list[Any]:
    """Return the package of every protocol: a new one is found like the others."""
    from clustering_protocols.protocol_packages import find_modules

    return [import_module(module) for module in find_modules().values()]
