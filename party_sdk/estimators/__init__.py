"""Simulated sessions as estimators of scikit-learn.

One process plays all parties and the analyst. A real session takes parties of their own:
see :func:`party_sdk.lab.local_sessions.local_session` for all of them on one machine.
"""

from party_sdk.estimators.base import CannotCluster
from party_sdk.estimators.clusterers import (
    FederatedCoClustering,
    FederatedFuzzyCMeans,
    FederatedGaussianMixture,
    FederatedKMeans,
    FederatedLatentClass,
    FederatedSpectralClustering,
)

__all__ = [
    "CannotCluster",
    "FederatedCoClustering",
    "FederatedFuzzyCMeans",
    "FederatedGaussianMixture",
    "FederatedKMeans",
    "FederatedLatentClass",
    "FederatedSpectralClustering",
]
