"""The public API: coordinate a session, take part in one, or simulate one locally.

    from coterie import Coordinator, DataCollaboration, Layout, Party, Policy
    from coterie import FederatedKMeans, local_session, simulate

The parameter classes of every protocol can be imported from here as well. Each name is
loaded lazily, on first access.
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

_NAMES = {
    "clustering_protocols.terms.preparation": "Preparation",
    "clustering_protocols.terms.schema": "Schema",
    "clustering_protocols.terms.sections": "Evaluation Release Retention",
    "clustering_protocols.terms.terms": "About Deadlines Guards Layout Slot",
    "party_sdk.coordinator.coordinator": "Coordinator",
    "party_sdk.estimators": "CannotCluster FederatedCoClustering FederatedFuzzyCMeans "
    "FederatedGaussianMixture FederatedKMeans FederatedLatentClass "
    "FederatedSpectralClustering",
    "party_sdk.home.policy": "Policy",
    "party_sdk.lab.local_sessions": "LocalSession local_session",
    "party_sdk.lab.simulated_session": "SimulatedSession simulate",
    "party_sdk.party.participant": "Party",
    "party_sdk.results.results": "Result",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module(f"{__name__}.{name}")
    module = _MODULES.get(name)
    if module is not None:
        return getattr(import_module(module), name)
    import_module("party_sdk")  # selects the protocol packages in use
    from clustering_protocols.protocol_packages import find_modules

    for path in find_modules().values() if not name.startswith("_") else ():
        protocol_module = import_module(path)
        if name in protocol_module.__all__ and name != "PROTOCOL":
            return getattr(protocol_module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
