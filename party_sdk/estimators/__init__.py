"""Simulated sessions as scikit-learn estimators.

All parties and the analyst run in one process. For a real session on one machine, with
separate parties, see :func:`party_sdk.lab.local_sessions.local_session`.
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
