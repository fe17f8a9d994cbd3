"""fedxai-lib's federated c-means, by the authors of `llf`. Arguments: FOLDER."""

import sys

import lloyd
from fedlangpy.core.entities import pickle_io
from fedxai_lib import FedXAIAlgorithm, run_fedxai_experiment
from fedxai_lib.algorithms.federated_cmeans_horizontal.client import (
    FederatedHorizontalCMClient,
)
from fedxai_lib.algorithms.federated_cmeans_horizontal.server import (
    FederatedHorizontalCMServer,
)

folder = sys.argv[1]
parties, updates = lloyd.settings(folder)


class Client(FederatedHorizontalCMClient):
    """A client that starts from the given centroids instead of the unit cube."""

    @pickle_io  # the library's own wire format
    def init_centers(self, input_params=None):  # noqa: ARG002  fedxai calls it
        """Return the start."""
        return lloyd.start(folder)


clients = [
    Client(type="client", id=f"client{number}", dataset=lloyd.site(folder, number))
    for number in range(1, parties + 1)
]
server = FederatedHorizontalCMServer(type="server")
parameters = {
    "num_clusters": len(lloyd.start(folder)),
    "lambda_factor": 2.0,
    "epsilon": 0.0,
    "max_number_rounds": updates,
    "min_num_clients": parties,
    "centroid_seed": 0,
}
algorithm = FedXAIAlgorithm.FED_CMEANS_HORIZONTAL
run_fedxai_experiment(algorithm, server, clients, parameters)
lloyd.write(folder, server.cluster_centers[-1], len(server.cluster_centers) - 1)
